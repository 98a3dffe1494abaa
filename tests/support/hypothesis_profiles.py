"""Profiles of Hypothesis: fixed examples on a developer's machine, new ones at each run of CI."""

from __future__ import annotations

import os
import random

import pytest
from hypothesis import settings

#: The profiles: the same examples at each run, and examples from a seed.
REPEATED, SEEDED = "arbor", "arbor-seeded"
_LARGEST_SEED = 2**32 - 1


def configure(config: pytest.Config) -> None:
    """Load the profile of this run: seeded in CI (`CI=true`) and with `--hypothesis-seed`, else repeated.

    Call it before Hypothesis reads its options. The workers of pytest-xdist get the seed with the options.
    """
    # No deadline, because the duration of an example depends on the load of the machine.
    settings.register_profile(REPEATED, deadline=None, derandomize=True)
    settings.register_profile(SEEDED, deadline=None, derandomize=False, database=None, print_blob=True)
    if config.option.hypothesis_seed is None and os.environ.get("CI") == "true":
        config.option.hypothesis_seed = str(random.SystemRandom().randint(0, _LARGEST_SEED))
    settings.load_profile(REPEATED if config.option.hypothesis_seed is None else SEEDED)


def report_seed(config: pytest.Config) -> str:
    """Return the line of pytest's header with the option that repeats the examples of the run."""
    seed = config.option.hypothesis_seed
    return "hypothesis: " + ("the same examples at each run" if seed is None else f"--hypothesis-seed={seed}")
