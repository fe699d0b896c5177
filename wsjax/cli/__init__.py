"""The command line: one module a verb, with its signature and what it prints.

`main` parses a command line (cyclopts), runs the verb, and turns errors into messages on stderr and
an exit code. The codes stand in `app.HELP`, which `wsjax --help` shows; a reader of stdout that has
left makes it 141.

A verb is a thin layer: it checks options that exclude each other, calls one public function of
wsjax (`predict` calls `wsjax.predictions`, `sweep` calls `wsjax.sweeps.sweep`, ...), and prints the
result. Its module imports numpy, jax and pandas inside functions only, so that `wsjax --help` is
there at once.

Read next: `app` (options that verbs share), `terminal` (progress, tables, numbers, JSON: what every
verb prints goes through it), `predict` (a short verb).

To add a verb:

1. Write `wsjax/cli/NAME.py`: a function with `@app.command`, keyword-only options annotated with
   `Parameter(help=...)`, a docstring of one sentence and an example (they are its `--help`), that
   returns an exit code. Share option types with `app`, print with `terminal.show_table`,
   `show_json` and `telling`, raise `InputError` for what the user can mend.
2. Name the module among those that `main` imports: they register their verbs.
"""

from wsjax.cli.main import main

__all__ = ["main"]
