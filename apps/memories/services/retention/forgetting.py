"""Forgetting: find memories by each rule in one statement, and archive them agent by agent in bounded steps.

The rules are `arbor.memory.forgetting`'s; the statements (`queries`) say the same to the database, which a test
compares. A plan goes by the rules themselves.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.memories.models import Memory, Mind
from apps.memories.services.jobs.rounds import Round, make_round
from apps.memories.services.retention import queries
from apps.memories.services.retention.archive import MOST_AT_ONCE, archive
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.forgetting import (
    BOOST,
    KEPT_PER_WEEK,
    Held,
    Policy,
    Reason,
    days_between,
    decayed_importance,
    forget,
)
from arbor.memory.values import MemoryStatus, MemoryType, Retention

ACTOR = "system:maintenance"
#: Memories that one step archives.
STEP = MOST_AT_ONCE
#: Memories that a plan looks at, and how much of each one's text it shows.
_MOST_PLANNED = 50_000
_GLIMPSE = 160


@dataclass(frozen=True, kw_only=True)
class Planned:
    """A memory that is going to be archived, and why."""

    memory_id: UUID
    type: MemoryType
    #: The beginning of its text.
    content: str
    reason: Reason
    #: As it was weighed, with what use has added, and decayed since then.
    importance: float
    effective_importance: float
    decayed_importance: float
    #: When it was last used, or else made.
    touched_at: datetime


@dataclass(frozen=True, kw_only=True)
class ForgettingPlan:
    """The memories of one agent that the next rounds of forgetting would archive."""

    agent_id: UUID
    #: Memories that the agent has in mind now, up to _MOST_PLANNED.
    active: int
    #: Expired first, then faded, trivial and crowded; the least important first.
    memories: tuple[Planned, ...]

    def count(self, reason: Reason) -> int:
        """Return how many go for this reason."""
        return sum(memory.reason is reason for memory in self.memories)


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
    return make_round("fade", waiting=queries.MINDS_NOT_LOOKED_AT.format(looked_at="forgot_at"), step=_fade)


def clean_up_memories() -> Round:
    """Archive what was of little importance from the start, of every agent that was not looked at for a day."""
    return make_round(
        "clean_up", waiting=queries.MINDS_NOT_LOOKED_AT.format(looked_at="cleaned_at"), step=_clean_up
    )


def keep_quotas() -> Round:
    """Archive what is above the quota, of every agent that has just grown or was not looked at for a day."""
    return make_round(
        "quota", waiting=queries.MINDS_NOT_LOOKED_AT.format(looked_at="counted_at"), step=_keep_quota
    )


def plan_forgetting(*, agent_id: UUID, limits: Policy | None = None) -> ForgettingPlan:
    """Plan the archiving of an agent's memories, with reasons, in the open transaction. One query.

    By the rules in Python, over all that the agent has in mind: for a person who asks, not for every round.
    """
    limits = limits or policy()
    rows = fetch(queries.MEMORIES_TO_PLAN, agent=agent_id, glimpse=_GLIMPSE, most=_MOST_PLANNED)
    now = rows[0][10] if rows else datetime.now(UTC)
    going: dict[UUID, Reason] = {}
    staying: list[tuple[UUID, Held]] = []
    states = {row[0]: _state_of(row) for row in rows}
    for memory_id, memory in states.items():
        verdict = forget(memory, now=now, policy=limits)
        if verdict.reason is not None:
            going[memory_id] = verdict.reason
        elif memory.type is MemoryType.EPISODIC:
            staying.append((memory_id, memory))
    free = [(memory_id, memory) for memory_id, memory in staying if not memory.is_protected]
    free.sort(key=lambda item: (item[1].effective_importance, item[1].created_at, item[0]))
    going |= dict.fromkeys(
        (memory_id for memory_id, _ in free[: _excess(len(staying), limits)]), Reason.CROWDED
    )
    planned = [_planned(row, states[row[0]], going[row[0]], now=now) for row in rows if row[0] in going]
    planned.sort(key=lambda memory: (list(Reason).index(memory.reason), memory.effective_importance))
    return ForgettingPlan(agent_id=agent_id, active=len(rows), memories=tuple(planned))


def _excess(count: int, limits: Policy) -> int:
    return max(0, count - limits.quota)


def _state_of(row: tuple[Any, ...]) -> Held:
    return Held(
        type=MemoryType(row[1]),
        importance=row[2],
        retention=Retention(row[3]),
        created_at=row[4],
        expires_at=row[5],
        used_at=row[6],
        uses=row[7],
        needed=row[8],
    )


def _planned(row: tuple[Any, ...], state: Held, reason: Reason, *, now: datetime) -> Planned:
    idle = days_between(state.touched_at, now)
    importance = state.effective_importance
    return Planned(
        memory_id=row[0],
        type=state.type,
        content=row[9],
        reason=reason,
        importance=state.importance,
        effective_importance=importance,
        decayed_importance=decayed_importance(importance=importance, days_since_use=idle),
        touched_at=state.touched_at,
    )


def _fade(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        found = _find(queries.FADED_MEMORIES, agent_id, limits)
        reason = f"{Reason.FADED} below {limits.archive_below:g}, decayed since they were last used"
        return _archive_step(
            agent_id, found, reason=reason, looked_at="forgot_at", all_found=len(found) < STEP
        )


def _clean_up(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        found = _find(queries.TRIVIAL_MEMORIES, agent_id, limits)
        reason = f"{Reason.TRIVIAL}, of an importance below {limits.cleanup_below:g} that use has not raised"
        return _archive_step(
            agent_id, found, reason=reason, looked_at="cleaned_at", all_found=len(found) < STEP
        )


def _keep_quota(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        active = Memory.objects.filter(
            agent_id=agent_id, status=MemoryStatus.ACTIVE, type=MemoryType.EPISODIC
        ).count()
        excess = _excess(active, limits)
        found = _find_least(agent_id, limits, excess=excess, active=active)
        reason = (
            f"{Reason.CROWDED}, the least important above the quota of {limits.quota:,} episodic memories"
        )
        # What is protected counts, but does not go: then nothing more can be done.
        settled = len(found) == excess or not found
        return _archive_step(agent_id, found, reason=reason, looked_at="counted_at", all_found=settled)


def _find_least(agent_id: UUID, limits: Policy, *, excess: int, active: int) -> list[UUID]:
    """Return up to STEP of the least important above the quota, looking at no more than it takes."""
    looked = STEP
    while excess > 0:
        every = looked >= active
        found = _find(
            queries.LEAST_IMPORTANT, agent_id, limits, looked=looked, step=min(excess, STEP), all=every
        )
        if found or every:
            return found
        looked *= 4
    return []


def _find(statement: str, agent_id: UUID, limits: Policy, **values: Any) -> list[UUID]:
    return [
        row[0] for row in fetch(statement, **{**_figures(limits), "agent": agent_id, "step": STEP, **values})
    ]


def _figures(limits: Policy) -> dict[str, Any]:
    return {
        "boost": BOOST,
        "kept": KEPT_PER_WEEK,
        "enough": queries.ENOUGH_WEEKS,
        "archive_below": limits.archive_below,
        "cleanup_below": limits.cleanup_below,
        "grace": limits.grace,
    }


def _archive_step(agent_id: UUID, found: list[UUID], *, reason: str, looked_at: str, all_found: bool) -> int:
    if found:
        archive(memory_ids=found, reason=reason, actor=ACTOR)
    if all_found:
        Mind.objects.filter(agent_id=agent_id).update(**{looked_at: Now()})
    return len(found)


def try_lock_mind(agent_id: UUID) -> bool:
    """Lock an agent's mind unless somebody changes it just now: maintenance comes back, and delays nobody."""
    ((locked,),) = fetch(queries.TRY_LOCK_MIND, place=int.from_bytes(agent_id.bytes[8:], signed=True))
    return bool(locked)


def expire_memories() -> Round:
    """Archive the memories whose time is over, agent by agent."""
    return make_round("expire", waiting=queries.AGENTS_WITH_EXPIRED, step=_expire)


def _expire(tenant_id: UUID, agent_id: UUID) -> int:
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        expired = Memory.objects.filter(agent_id=agent_id, status=MemoryStatus.ACTIVE, expires_at__lte=Now())
        ids = list(expired.order_by("expires_at").values_list("id", flat=True)[:STEP])
        if ids:
            archive(
                memory_ids=ids, reason="their time was over", actor=ACTOR, action=AuditAction.MEMORIES_EXPIRED
            )
        return len(ids)
