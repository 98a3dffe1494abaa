"""Show the facts that consolidation may propose as parts of the self, and what each of them still lacks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import NamedTuple
from uuid import UUID

from apps.heartbeats.services.legs.promotion import (
    CONCLUDED,
    EVIDENCED,
    HELD,
    MIN_AGE_DAYS,
    MIN_RECALLS,
    MIN_RELEVANCE,
    PROMOTED_AS,
    RELEVANCE,
    THRESHOLD_OF,
    condition_values,
)
from apps.tenants.statements import fetch

#: Candidates shown at most.
MAX_SHOWN = 200

# Part: the least trust at which a memory `m` is proposed, as calibration has moved it.
_SURE = THRESHOLD_OF.format(kind=PROMOTED_AS, base="%(sure)s")

# Part: a memory `m` was proposed.
_PROPOSED = """m.id::text IN (SELECT p.change->>'memory' FROM selves_proposal p
            WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.change ? 'memory')"""

# Facts that were recalled at least once, the nearest to a proposal first, and after them those that were proposed. Evidence is
# looked for last, for the rows shown.
_NEAREST = f"""
SELECT m.id, m.content, m.trust, c.count, c.last_at, m.relevance, m.age_days, {EVIDENCED},
    coalesce((SELECT p.status FROM selves_proposal p WHERE p.tenant_id = m.tenant_id AND p.agent_id = m.agent_id
        AND p.change->>'memory' = m.id::text ORDER BY p.created_at DESC LIMIT 1), ''), m.sure
FROM (
    SELECT m.*, {_SURE} AS sure, {RELEVANCE} AS relevance, extract(epoch FROM now() - m.created_at)::float8 / 86400 AS age_days
    FROM memories_memory m JOIN memories_memoryaccess c ON c.tenant_id = m.tenant_id AND c.memory_id = m.id
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.type = 'semantic' AND m.status = 'active'
        AND c.count > 0 AND length(m.content) <= %(longest)s AND NOT {CONCLUDED}
        AND (NOT {HELD} OR {_PROPOSED})
    ORDER BY ({_PROPOSED})::int,
        (c.count >= %(recalled)s)::int + (m.trust >= {_SURE})::int + ({RELEVANCE} >= %(relevant)s)::int
        + (m.created_at <= now() - make_interval(days => %(days)s))::int DESC, m.trust DESC, m.importance DESC, m.id
    LIMIT %(most)s
) m JOIN memories_memoryaccess c ON c.tenant_id = m.tenant_id AND c.memory_id = m.id
"""  # noqa: S608 (no external input)


class PromotionCandidate(NamedTuple):
    """A fact that may become a proposal, with the conditions of one: the columns of `_NEAREST`, in their order."""

    memory_id: UUID
    content: str
    #: How far the agent believes it, from 0 to 1.
    trust: float
    recalled: int
    recalled_at: datetime | None
    relevance: float
    age_days: float
    #: Whether something else than the agent's own notes supports it.
    evidenced: bool
    #: The status of the proposal that was made of it; empty: none was.
    proposal: str
    #: The least trust of a fact that is proposed.
    needed_trust: float

    @property
    def missing(self) -> tuple[str, ...]:
        """Return the conditions that are not met yet."""
        return tuple(self._missing())

    @property
    def is_ready(self) -> bool:
        """Return whether the next consolidation may propose it."""
        return not self.missing and not self.proposal

    def _missing(self) -> Iterator[str]:
        if self.age_days < MIN_AGE_DAYS:
            yield f"{self.age_days:.1f} of {MIN_AGE_DAYS} days old"
        if self.trust < self.needed_trust:
            yield f"trust {self.trust:.2f} of {self.needed_trust:g}"
        if self.recalled < MIN_RECALLS:
            yield f"recalled {self.recalled} of {MIN_RECALLS} times"
        if self.relevance < MIN_RELEVANCE:
            yield f"relevance {self.relevance:.2f} of {MIN_RELEVANCE:g}"
        if not self.evidenced:
            yield "no evidence but the agent's own notes"


def promotion_candidates(*, agent_id: UUID, limit: int = 50) -> Sequence[PromotionCandidate]:
    """Return the facts nearest to a proposal, first those that may be proposed now, last those that were proposed.

    One statement, which changes nothing.
    """
    rows = fetch(
        _NEAREST,
        agent=agent_id,
        most=min(limit, MAX_SHOWN),
        **condition_values(),
    )
    candidates = [PromotionCandidate(*row) for row in rows]
    return sorted(
        candidates,
        key=lambda found: (
            not found.is_ready,
            bool(found.proposal),
            len(found.missing),
            -found.trust,
            found.memory_id,
        ),
    )
