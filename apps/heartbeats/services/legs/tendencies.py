"""Propose the traits and capabilities that an agent's actions show: columns of a statement, and proposals from them."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import Any

from apps.tenants.packing import unpack
from arbor.selves.proposals import NewProposal, ProposalKind
from arbor.selves.tendencies import Tendency, band, tendencies
from arbor.selves.values import BeliefStatus

#: The most of these proposals in one run.
MOST_TENDENCIES = 2

#: Read with the candidates of consolidation. `known_tendencies` are the keys of all tendencies that were
#: proposed before, rejected ones too; `qualities` the traits and capabilities that the agent has or had.
TENDENCY_COLUMNS = """
    (SELECT learned FROM agents_agentstate WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s) AS learned,
    (SELECT coalesce(json_agg(json_build_array(kind, content, strength, status)), '[]') FROM selves_identityaspect
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND kind IN ('trait', 'capability')) AS qualities,
    (SELECT coalesce(json_agg(p.change->>'tendency'), '[]') FROM selves_proposal p
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.kind = 'identity' AND p.change ? 'tendency'
    ) AS known_tendencies
"""


def propose_tendencies(
    *,
    actions: Sequence[str],
    learned: bytes | None,
    qualities: Sequence[Sequence[Any]],
    known: Collection[str],
    source: str,
) -> list[NewProposal]:
    """Return proposals of the surest traits and capabilities that are new to the agent, or have another strength now.

    `learned` is packed, as the column has it. A trait or capability that was dropped is not proposed again.
    """
    existing = {(kind, content): (strength, status) for kind, content, strength, status in qualities}
    new = [
        tendency
        for tendency in tendencies(actions, unpack(learned) if learned else {})
        if tendency.key not in known and _is_news(tendency, existing.get((tendency.kind, tendency.name)))
    ]
    return [_proposal(tendency, source) for tendency in new[:MOST_TENDENCIES]]


def _is_news(tendency: Tendency, existing: tuple[float, str] | None) -> bool:
    if existing is None:
        return True
    strength, status = existing
    return status != BeliefStatus.DROPPED and band(strength) != band(tendency.strength)


def _proposal(tendency: Tendency, source: str) -> NewProposal:
    return NewProposal(
        kind=ProposalKind.IDENTITY,
        content=tendency.name,
        confidence=tendency.confidence,
        source=source,
        change={
            "aspect": tendency.kind.value,
            "strength": tendency.strength,
            "tendency": tendency.key,
        },
    )
