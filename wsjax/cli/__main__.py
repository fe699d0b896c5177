import sys

from wsjax.cli import main

sys.exit(main())
