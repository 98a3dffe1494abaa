"""Forgetting: each rule finds its memories by one statement and archives them, agent by agent, a bounded step at a time.

The rules are `arbor.memory.forgetting`'s; the statements say the same to the database, which a test compares. Only what
is found is read from the table: the rules look at a narrow index.
"""

from __future__ import annotations

from typing import Any
from uuid import UUID

from django.conf import settings

from apps.memories.services.archive import MOST_AT_ONCE, archive
from apps.memories.services.rounds import Round, make_round
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import change, fetch
from arbor.memory.decay import BOOST, KEPT_PER_WEEK
from arbor.memory.forgetting import Policy, Reason

ACTOR = "system:maintenance"
#: Memories that one step archives.
STEP = MOST_AT_ONCE
#: Weeks after which nothing is left of any importance; beyond, the database's powers underflow.
_ENOUGH_WEEKS = 10_000

#: Agents that were not looked at for a day, by each rule.
_DUE = (
    "SELECT agent_id FROM memories_mind WHERE tenant_id = t.id"
    " AND ({looked_at} IS NULL OR {looked_at} < now() - interval '1 day')"
)
_LOOKED = "UPDATE memories_mind SET {looked_at} = now() WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s"
_TRY_LOCK = "SELECT pg_try_advisory_xact_lock(%(place)s)"

_WEEKS = "least(%(enough)s, greatest(0, extract(epoch FROM now() - {moment})::float8 / 604800))"
#: Of a memory `m` whose uses are in `a`: what it is, and what has become of its importance.
_USED = """
    m.id, m.type, m.importance, m.created_at, uses.touched_at,
    m.importance + (1 - m.importance) * least(1, %(boost)s * ln(1 + uses.uses)) AS effective
""".strip()
_USES = """
LEFT JOIN memories_memoryaccess a ON a.tenant_id = m.tenant_id AND a.memory_id = m.id
CROSS JOIN LATERAL (
    SELECT greatest(0, coalesce(a.count, 0) + coalesce(a.reinforced, 0))::float8 AS uses,
        greatest(m.created_at, a.last_at, a.reinforced_at) AS touched_at
) uses
"""
#: What an open goal is tied to is still needed.
NEEDED = """EXISTS (
    SELECT FROM memories_edge e JOIN goals_goal g ON g.tenant_id = e.tenant_id
        AND g.id = CASE e.source_kind WHEN 'goal' THEN e.source_id ELSE e.target_id END
    WHERE e.tenant_id = %(tenant)s AND e.agent_id = %(agent)s AND g.state IN ('active', 'queued', 'backburner')
        AND (e.source_id = {id} AND e.target_kind = 'goal' OR e.target_id = {id} AND e.source_kind = 'goal')
)"""
# Whatever its use has added, a memory's importance from its making is the least that it can have decayed to.
_FADED = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance * power(%(kept)s, {_WEEKS.format(moment="m.created_at")}) < %(archive_below)s
        AND m.created_at <= now() - %(grace)s
) held
WHERE touched_at <= now() - %(grace)s
    AND effective * power(%(kept)s, {_WEEKS.format(moment="touched_at")}) < %(archive_below)s
    AND NOT {NEEDED.format(id="held.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608 (our own parts)
_TRIVIAL = f"""
SELECT id FROM (
    SELECT {_USED} FROM memories_memory m {_USES}
    WHERE m.tenant_id = %(tenant)s AND m.agent_id = %(agent)s AND m.status = 'active' AND m.retention <> 'permanent'
        AND m.importance < %(cleanup_below)s AND m.type = 'episodic' AND m.created_at <= now() - %(grace)s
) held
WHERE touched_at <= now() - %(grace)s AND effective < %(cleanup_below)s AND NOT {NEEDED.format(id="held.id")}
ORDER BY importance, created_at, id LIMIT %(step)s
"""  # noqa: S608
_COUNT = """
SELECT count(*) FROM memories_memory
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND type = 'episodic'
"""
# The index has them by importance, and use only adds to it. So whoever of the first `looked` comes, with what use has
# added, no later than the last of them, comes before all that were not looked at.
_LEAST = f"""
WITH least AS MATERIALIZED (
    SELECT tenant_id, id, type, importance, created_at FROM memories_memory
    WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND status = 'active' AND retention <> 'permanent'
        AND type = 'episodic'
    ORDER BY importance, created_at, id LIMIT %(looked)s
), last AS (
    SELECT importance, created_at, id FROM least ORDER BY importance DESC, created_at DESC, id DESC LIMIT 1
)
SELECT held.id FROM (SELECT {_USED} FROM least m {_USES}) held, last
WHERE (held.effective, held.created_at, held.id) <= (last.importance, last.created_at, last.id)
    AND NOT {NEEDED.format(id="held.id")}
ORDER BY held.effective, held.created_at, held.id LIMIT %(step)s
"""  # noqa: S608


def policy() -> Policy:
    """Return the installation's limits. Raises ConfigurationInvalid for one that makes no sense."""
    return Policy(
        archive_below=settings.ARBOR_ARCHIVE_BELOW,
        cleanup_below=settings.ARBOR_CLEANUP_BELOW,
        grace=settings.ARBOR_FORGETTING_GRACE,
        quota=settings.ARBOR_MEMORY_QUOTA,
    )


def fade_memories() -> Round:
    """Archive what has faded, of every agent that was not looked at for a day."""
    return make_round("fade", waiting=_DUE.format(looked_at="forgot_at"), tend=_fade)


def clean_up_memories() -> Round:
    """Archive what was of little importance from the start, of every agent that was not looked at for a day."""
    return make_round("clean_up", waiting=_DUE.format(looked_at="cleaned_at"), tend=_clean_up)


def keep_quotas() -> Round:
    """Archive what is above the quota, of every agent that has just grown or was not looked at for a day."""
    return make_round("quota", waiting=_DUE.format(looked_at="counted_at"), tend=_keep_quota)


def _fade(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not take_mind(agent_id):
            return 0
        found = _find(_FADED, agent_id, limits)
        reason = f"{Reason.FADED} below {limits.archive_below:g}, decayed since they were last used"
        return _archive_step(
            agent_id, found, reason=reason, looked_at="forgot_at", all_found=len(found) < STEP
        )


def _clean_up(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not take_mind(agent_id):
            return 0
        found = _find(_TRIVIAL, agent_id, limits)
        reason = f"{Reason.TRIVIAL}, of an importance below {limits.cleanup_below:g} that use has not raised"
        return _archive_step(
            agent_id, found, reason=reason, looked_at="cleaned_at", all_found=len(found) < STEP
        )


def _keep_quota(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not take_mind(agent_id):
            return 0
        ((held,),) = fetch(_COUNT, agent=agent_id)
        excess = held - limits.quota
        found = _find_least(agent_id, limits, excess=excess, held=held)
        reason = (
            f"{Reason.CROWDED}, the least important above the quota of {limits.quota:,} episodic memories"
        )
        # What is protected counts, but does not go: then nothing more can be done.
        settled = len(found) == max(0, excess) or not found
        return _archive_step(agent_id, found, reason=reason, looked_at="counted_at", all_found=settled)


def _find_least(agent_id: UUID, limits: Policy, *, excess: int, held: int) -> list[UUID]:
    """Return up to STEP of the least important above the quota, looking at no more than it takes."""
    looked = STEP
    found: list[UUID] = []
    while excess > 0 and not found and looked < held * 4:
        found = _find(_LEAST, agent_id, limits, looked=looked, step=min(excess, STEP))
        looked *= 4
    return found


def _find(statement: str, agent_id: UUID, limits: Policy, **values: Any) -> list[UUID]:
    return [
        row[0] for row in fetch(statement, **{**_figures(limits), "agent": agent_id, "step": STEP, **values})
    ]


def _figures(limits: Policy) -> dict[str, Any]:
    return {
        "boost": BOOST,
        "kept": KEPT_PER_WEEK,
        "enough": _ENOUGH_WEEKS,
        "archive_below": limits.archive_below,
        "cleanup_below": limits.cleanup_below,
        "grace": limits.grace,
    }


def _archive_step(agent_id: UUID, found: list[UUID], *, reason: str, looked_at: str, all_found: bool) -> int:
    if found:
        archive(memory_ids=found, reason=reason, actor=ACTOR)
    if all_found:
        change(_LOOKED.format(looked_at=looked_at), agent=agent_id)
    return len(found)


def take_mind(agent_id: UUID) -> bool:
    """Lock an agent's mind unless somebody changes it just now: maintenance comes back, and holds nobody up."""
    ((taken,),) = fetch(_TRY_LOCK, place=int.from_bytes(agent_id.bytes[8:], signed=True))
    return bool(taken)
