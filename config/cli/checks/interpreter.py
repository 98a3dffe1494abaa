"""The Python interpreter as `arbor doctor` reports it."""

from __future__ import annotations

from config.cli.checks.finding import Finding, ok
from config.interpreter import this_interpreter


def check_interpreter() -> Finding:
    """Report how the interpreter was built; a slow build is no fault."""
    return ok("python", this_interpreter().summary)
