"""Identities: agents created per second, one action authorized, and a seed exported and imported."""

from __future__ import annotations

from typing import Any

from bench import authorization, creation, seeds
from bench.support.installation import Installation


def measure(
    installation: Installation, *, agents: int, batch: int, rounds: int, memories: int
) -> dict[str, Any]:
    """Return the figures of the three benchmarks, run one after another."""
    return {
        **creation.measure(installation, agents=agents, batch=batch),
        **authorization.measure(rounds=rounds),
        **seeds.measure(installation, memories=memories),
    }
