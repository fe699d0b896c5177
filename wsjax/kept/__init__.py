"""What is kept between processes, so that nothing is traced or compiled twice on a machine.

`files`      entries by key, in the folder where JAX keeps what it compiles
`loadable`   jitted functions whose compiled programs are entries: loaded, they need no tracing

An entry's name is a digest of all that it depends on: its key, this package's sources, the versions
of what made it, the processor. So none is ever stale; a damaged one counts as absent.

`model` and the packages below it compile through `jit`; `wsjax.engine.tapes` keeps its tapes here.
"""

from wsjax.kept.files import identity, keep_compiled, read, write
from wsjax.kept.loadable import alone, jit, program

__all__ = ["alone", "identity", "jit", "keep_compiled", "program", "read", "write"]
