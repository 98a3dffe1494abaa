"""`python -m config.cli` is `arbor`."""

from config.cli.main import run

run()
