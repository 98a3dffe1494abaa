"""Benchmarks. Like the processes that `arbor up` starts, they compute in one thread (`config.cli.installation.parts`)."""

import os

# Before numpy is imported, which reads it once.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
