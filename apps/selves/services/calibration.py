"""Judge accepted proposals by what they created, and move the thresholds of promotions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from apps.agents.services.lookup import agent_by_id
from apps.selves.models import ProposalCalibration
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.ids import uuid7
from arbor.selves.calibration import (
    MAX_JUDGED,
    Calibration,
    ProposalJudgment,
    judge,
    threshold_of,
)
from arbor.selves.proposals import ProposalKind

#: A memory that is archived within this time after its acceptance is gone, even if it was recalled.
_SHORT_LIVED = timedelta(days=30)

# The latest decided proposals of each kind, with the fate of the memory or the part of the self that each one created:
# [kind, was accepted, decided at, gone, contradicted, confirmed]; `gone` is null where nothing is left to judge. An aspect and a
# preference are confirmed by staying: every heartbeat reads them, and may propose to change them.
_DECIDED = """
WITH decided AS MATERIALIZED (
    SELECT p.id, p.kind, p.status, p.decided_at, row_number() OVER (PARTITION BY p.kind, p.status ORDER BY p.decided_at DESC, p.id) AS place
    FROM selves_proposal p
    WHERE p.tenant_id = %(tenant)s AND p.agent_id = %(agent)s AND p.status IN ('accepted', 'rejected')
        AND p.decided_at <= %(now)s
), brought AS MATERIALIZED (
    SELECT m.id, m.source, m.status, m.archived_at FROM memories_memory m
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.source LIKE 'proposal:%%'
        AND EXISTS (SELECT FROM decided WHERE status = 'accepted')
)
SELECT d.kind, d.status = 'accepted', d.decided_at, made.gone, made.contradicted, made.confirmed
FROM decided d LEFT JOIN LATERAL (
    SELECT m.status <> 'active' AND (coalesce(c.count, 0) = 0 OR m.archived_at < d.decided_at + %(short_lived)s) AS gone,
        EXISTS (SELECT FROM memories_edge e WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s
            AND e.relation = 'contradicts' AND m.id IN (e.source_id, e.target_id)) AS contradicted,
        coalesce(c.count, 0) > 0 AS confirmed
    FROM brought m LEFT JOIN memories_memoryaccess c ON c.tenant_id = %(tenant)s AND c.memory_id = m.id
    WHERE m.source = 'proposal:' || d.id
    UNION ALL
    SELECT coalesce(b.status, 'dropped') = 'dropped', b.status = 'questioned',
        EXISTS (SELECT FROM selves_beliefevidence v WHERE v.tenant_id = %(tenant)s AND v.belief_id = b.id AND v.supports
            AND v.at > d.decided_at) OR b.tested_at > d.decided_at
    FROM selves_selfchange s LEFT JOIN selves_belief b ON b.tenant_id = %(tenant)s AND b.id = s.target_id
    WHERE s.tenant_id = %(tenant)s AND s.proposal_id = d.id AND s.what = 'belief'
    UNION ALL
    SELECT coalesce(i.status, 'dropped') = 'dropped', i.status = 'questioned', coalesce(i.status = 'held', false)
    FROM selves_selfchange s LEFT JOIN selves_identityaspect i ON i.tenant_id = %(tenant)s AND i.id = s.target_id
    WHERE s.tenant_id = %(tenant)s AND s.proposal_id = d.id AND s.what = 'aspect'
    UNION ALL
    SELECT f.id IS NULL, false, f.value = s.after->>'value'
    FROM selves_selfchange s LEFT JOIN selves_preference f ON f.tenant_id = %(tenant)s AND f.id = s.target_id
    WHERE s.tenant_id = %(tenant)s AND s.proposal_id = d.id AND s.what = 'preference'
    LIMIT 1
) made ON d.status = 'accepted'
WHERE d.place <= %(most)s
"""


def calibrate(*, agent_id: UUID, now: datetime) -> dict[ProposalKind, Calibration]:
    """Judge an agent's decided proposals, and store the counts and thresholds by kind. Two statements, one without proposals."""
    counts: dict[ProposalKind, Counter[str]] = {}
    rows = fetch(_DECIDED, agent=agent_id, now=now, most=MAX_JUDGED, short_lived=_SHORT_LIVED)
    for kind, accepted, decided_at, gone, contradicted, confirmed in rows:
        count = counts.setdefault(ProposalKind(kind), Counter())
        if not accepted:
            count["rejected"] += 1
        elif gone is not None:
            count[
                judge(
                    age=now - decided_at,
                    gone=gone,
                    contradicted=bool(contradicted),
                    confirmed=bool(confirmed),
                )
            ] += 1
    found = {
        kind: Calibration(
            right=count[ProposalJudgment.RIGHT],
            wrong=count[ProposalJudgment.WRONG],
            rejected=count["rejected"],
        )
        for kind, count in counts.items()
    }
    if found:
        _store(agent_id, found, now)
    return found


def calibrations_of(agent_id: UUID) -> list[ProposalCalibration]:
    """Return the calibration of an agent's proposals by kind; empty before the first judgment. Raises NotFound."""
    agent_by_id(agent_id)
    return list(ProposalCalibration.objects.filter(agent_id=agent_id).order_by("kind"))


def _store(agent_id: UUID, found: Mapping[ProposalKind, Calibration], now: datetime) -> None:
    ProposalCalibration.objects.bulk_create(
        [
            ProposalCalibration(
                id=uuid7(),
                tenant_id=current_tenant(),
                agent_id=agent_id,
                kind=kind,
                right=calibration.right,
                wrong=calibration.wrong,
                rejected=calibration.rejected,
                threshold=threshold_of(kind, calibration),
                computed_at=now,
            )
            for kind, calibration in sorted(found.items())
        ],
        update_conflicts=True,
        unique_fields=["tenant", "agent", "kind"],
        update_fields=["right", "wrong", "rejected", "threshold", "computed_at"],
    )
