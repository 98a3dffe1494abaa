"""What an agent has lived with for long enough to be asked whether it is a part of it: found when memory is tended."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any
from uuid import UUID

from apps.selves.services.experiences import let_go_of_old_ones
from apps.selves.services.proposals import Proposed, propose
from apps.tenants.statements import fetch
from arbor.selves.experiences import MOST_KEPT
from arbor.selves.patterns import LOOKED_AT, patterns
from arbor.selves.proposals import NewProposal, ProposalKind, shortened
from arbor.selves.values import AspectKind, BeliefCategory

# Seed 000, 5: what may be promoted.
OLD_ENOUGH_DAYS = 3
SURE_ENOUGH = 0.75
RECALLED_ENOUGH = 3
RELEVANT_ENOUGH = 0.5
#: At one time; ours, so that a queue is not filled by one look.
MOST_PROMOTED = 3
MOST_PATTERNS = 2
#: What consolidation proposes is so named.
SOURCE = "consolidation"

# Relevance fades as in `arbor.memory.decay`; evidence is a source of its own, or a relation to what supports it.
_CANDIDATES = """
SELECT
    (SELECT coalesce(json_agg(memory), '[]') FROM (
        SELECT m.id, m.content, m.trust FROM memories_memory m
        JOIN memories_memoryaccess c ON c.tenant_id = m.tenant_id AND c.memory_id = m.id
        WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.type = 'semantic' AND m.status = 'active'
            AND c.count >= %(recalled)s AND m.trust >= %(sure)s AND length(m.content) <= 1000
            AND m.created_at <= now() - make_interval(days => %(days)s)
            AND m.importance * exp(-m.decay_rate * extract(epoch FROM now() - coalesce(c.last_at, m.created_at)) / 86400)
                >= %(relevant)s
            AND (jsonb_array_length(CASE jsonb_typeof(m.detail->'sources') WHEN 'array' THEN m.detail->'sources'
                    ELSE '[]' END) > 0
                OR EXISTS (SELECT FROM memories_edge e WHERE e.tenant_id = m.tenant_id AND e.agent_id = m.agent_id
                    AND (e.target_id = m.id AND e.relation = 'supports'
                        OR e.source_id = m.id AND e.relation IN ('derived_from', 'learned_from'))))
            AND NOT EXISTS (SELECT FROM selves_proposal p WHERE p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id
                AND p.change->>'memory' = m.id::text)
        ORDER BY m.trust DESC, m.importance DESC, m.id LIMIT %(most)s
    ) memory) AS memories,
    (SELECT coalesce(json_agg(action ORDER BY tick, id), '[]') FROM (
        SELECT action, tick, id FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
        ORDER BY tick DESC, id DESC LIMIT %(looked_at)s
    ) latest) AS actions,
    (SELECT coalesce(json_agg(p.change->>'pattern'), '[]') FROM selves_proposal p
        WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.kind = 'pattern') AS known,
    (SELECT count(*) FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s) AS experiences
"""


@dataclass(frozen=True, kw_only=True)
class Consolidated:
    """What a look at the self brought: proposals, and experiences that were let go."""

    proposed: Proposed
    let_go: int = 0


def look_for_proposals(*, agent_id: UUID) -> Consolidated:
    """Propose what an agent has held long enough, and what it keeps doing. One statement where there is nothing.

    A fact about itself is proposed as a side of who it is, another one as something to believe.
    """
    ((memories, actions, known, experiences),) = fetch(
        _CANDIDATES,
        agent=agent_id,
        recalled=RECALLED_ENOUGH,
        sure=SURE_ENOUGH,
        days=OLD_ENOUGH_DAYS,
        relevant=RELEVANT_ENOUGH,
        most=MOST_PROMOTED,
        looked_at=LOOKED_AT,
    )
    habits = [each for each in patterns(actions) if each.key not in known][:MOST_PATTERNS]
    proposals = [_promotion(memory) for memory in memories]
    proposals += [
        NewProposal(
            kind=ProposalKind.PATTERN,
            content=habit.in_words(),
            confidence=habit.confidence,
            source=SOURCE,
            change={"pattern": habit.key},
        )
        for habit in habits
    ]
    gone = let_go_of_old_ones(agent_id=agent_id) if experiences > MOST_KEPT else 0
    return Consolidated(proposed=propose(agent_id=agent_id, proposals=proposals), let_go=gone)


def _promotion(memory: dict[str, Any]) -> NewProposal:
    of_itself = memory["content"].lstrip().startswith(("I ", "I'm ", "I’m ", "My "))
    return NewProposal(
        kind=ProposalKind.IDENTITY if of_itself else ProposalKind.BELIEF,
        content=shortened(memory["content"]),
        confidence=memory["trust"],
        source=SOURCE,
        change={
            "memory": memory["id"],
            **(
                {"aspect": AspectKind.SELF_CONCEPT.value}
                if of_itself
                else {"category": BeliefCategory.WORLD.value}
            ),
        },
        evidence=[memory["id"]],
    )
