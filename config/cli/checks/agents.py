"""Check that the rows of agents agree."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from apps.fleet.disagreements import Disagreement, DisagreementKind, find_disagreements
from config.cli.checks.finding import Finding, name_first, ok, warn

#: The problem of each kind of disagreement, and its remedy.
_FAULTS: Mapping[DisagreementKind, tuple[str, str]] = MappingProxyType(
    {
        DisagreementKind.NO_HEARTBEATS: (
            "active, but without heartbeats",
            "`arbor agent stop NAME`, then `arbor agent start NAME`",
        ),
        DisagreementKind.NEEDLESS_HEARTBEATS: (
            "not active, but with heartbeats, which are skipped",
            "the next due heartbeat switches the schedule off; `arbor scheduler` must run",
        ),
        DisagreementKind.NOT_ENDORSED: ("not endorsed", "run `arbor prepare`"),
    }
)


def check_agents() -> Finding:
    """Check that the status, the schedule and the identity of every agent agree."""
    found = find_disagreements()
    if not found:
        return ok("agents", "status, schedule and identity of every agent agree")
    remedies = dict.fromkeys(_FAULTS[disagreement.kind][1] for disagreement in found)
    return warn("agents", "; ".join(map(_fault, found)), "; ".join(remedies))


def _fault(disagreement: Disagreement) -> str:
    return f"{_FAULTS[disagreement.kind][0]}: {name_first(disagreement.first, total=disagreement.agents)}"
