"""Score the trust in agents from what their heartbeats recorded, and judge their proposals, once a day."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from uuid import UUID

from apps.audit.models import AuditAction
from apps.authority.services.trust_tiers import apply_tallies, trust_score_of
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.selves.services.calibration import calibrate
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.authority.trust_tiers import SCORED_DAYS, Tally, TrustPart

JOB = "score_agents"
#: How often an agent is scored; one with a new breach is scored by the next run.
PERIOD = timedelta(days=1)
#: Audit records of this age at most are searched for new breaches; the job runs more often.
_RECENT = timedelta(days=1)

# An agent's own breaches: an outgoing secret or a private address that a reflex blocked, and a forged or replayed request. Refusals
# of the installation, such as a heartbeat of a suspended identity, are the doing of others.
_BREACH = f"""(e.action = '{AuditAction.REFLEX}' OR e.action = '{AuditAction.REQUEST_REFUSED}' AND e.actor LIKE 'agent:%%')"""
_WAITING = f"""
SELECT a.id AS agent_id FROM agents_agent a
LEFT JOIN authority_trustscore s ON s.tenant_id = a.tenant_id AND s.agent_id = a.id
WHERE a.tenant_id = t.id AND coalesce(s.computed_at, '-infinity') < now() - interval '{PERIOD.total_seconds():g} s'
UNION
SELECT s.agent_id FROM audit_auditevent e
JOIN authority_trustscore s ON s.tenant_id = e.tenant_id AND s.agent_id = e.agent_id
WHERE e.tenant_id = t.id AND e.at > now() - interval '{_RECENT.total_seconds():g} s' AND e.at > s.computed_at AND {_BREACH}
"""  # noqa: S608 (no external input)

# The records by part of the score: of the last days, [good, total] of outcomes and of ended heartbeats, the number of breaches, and
# [decided, rolled back] of changes; of all days, [good, total] of judged proposals. Then the message of the latest breach since `since`.
_FACTS = f"""
SELECT
    (SELECT json_build_array(count(*) FILTER (WHERE outcome = 'success') + 0.5 * count(*) FILTER (WHERE outcome = 'partial'),
        count(*) FILTER (WHERE outcome <> 'unknown'))
        FROM selves_experience WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND at > %(from)s AND at <= %(now)s
    ) AS success,
    (SELECT json_build_array(count(*) FILTER (WHERE status = 'done'), count(*)) FROM heartbeats_heartbeat
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND started_at > %(from)s AND started_at <= %(now)s
            AND status IN ('done', 'failed')
    ) AS uptime,
    (SELECT count(*) FROM audit_auditevent e WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s
        AND e.at > %(from)s AND e.at <= %(now)s AND {_BREACH}
    ) AS breaches,
    (SELECT json_build_array(coalesce(sum("right"), 0), coalesce(sum("right" + wrong), 0)) FROM selves_calibration
        WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s
    ) AS calibration,
    (SELECT json_build_array(count(*) FILTER (WHERE decided_by LIKE 'heartbeat:%%'), count(*) FILTER (WHERE reason LIKE 'rollback%%'))
        FROM selves_selfchange WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND at > %(from)s AND at <= %(now)s
    ) AS changes,
    (SELECT e.message FROM audit_auditevent e WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s
        AND e.at > %(since)s AND e.at <= %(now)s AND {_BREACH} ORDER BY e.at DESC LIMIT 1
    ) AS breach
"""  # noqa: S608 (no external input)


def score_agents() -> JobRunResult:
    """Score the agents that were not scored for a day, and those with a new breach."""
    return run_job(JOB, waiting=_WAITING, step=_step)


def _step(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        score_agent(agent_id=agent_id, now=datetime.now(UTC))
    # One step scores an agent: 0 ends its steps.
    return 0


def score_agent(*, agent_id: UUID, now: datetime) -> None:
    """Judge an agent's proposals, compute its trust score, and move its tier, in the open transaction.

    Raises NotFound.
    """
    calibrate(agent_id=agent_id, now=now)
    score = trust_score_of(agent_id)
    # The first score looks back to the agent's birth, so that earlier breaches lower the tier too.
    ((success, uptime, breaches, calibration, changes, breach),) = fetch(
        _FACTS,
        agent=agent_id,
        now=now,
        since=score.computed_at or score.since,
        **{"from": now - timedelta(days=SCORED_DAYS)},
    )
    decided, rolled_back = changes
    heartbeats = uptime[1]
    tallies = {
        TrustPart.SUCCESS: Tally(good=success[0], total=success[1]),
        TrustPart.UPTIME: Tally(good=uptime[0], total=heartbeats),
        TrustPart.SECURITY: Tally(good=max(heartbeats - breaches, 0), total=max(heartbeats, breaches)),
        TrustPart.CALIBRATION: Tally(good=calibration[0], total=calibration[1]),
        TrustPart.ROLLBACK: Tally(good=max(decided - rolled_back, 0), total=max(decided, rolled_back)),
    }
    apply_tallies(agent_id=agent_id, tallies=tallies, breach=breach or "", now=now)
