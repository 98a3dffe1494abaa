"""Forgetting: find memories by each rule in one statement, and archive them agent by agent in bounded steps.

The rules are in `arbor.memory.forgetting`. The statements in `queries` implement them in SQL; a test compares the two. A
plan applies the rules in Python.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import Count
from django.db.models.functions import Now

from apps.audit.models import AuditAction
from apps.memories.models import Memory, Mind
from apps.memories.services.jobs.job_runs import JobRunResult, run_job
from apps.memories.services.retention import queries
from apps.memories.services.retention.archive import MOST_AT_ONCE, archive
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.memory.forgetting import (
    BOOST,
    RETAINED_PER_WEEK,
    ForgettableMemory,
    ForgettingPolicy,
    ForgettingReason,
    days_between,
    decayed_importance,
    forgetting_reason,
)
from arbor.memory.values import MemoryStatus, MemoryType, Retention

ACTOR = "system:maintenance"
#: Memories archived in one step at most.
STEP = MOST_AT_ONCE
#: Memories read for a plan at most, and characters shown of each.
_MOST_PLANNED = 50_000
_GLIMPSE = 160


@dataclass(frozen=True, kw_only=True)
class PlannedArchival:
    """A memory to be archived, with the reason."""

    memory_id: UUID
    type: MemoryType
    #: The beginning of its text.
    content: str
    reason: ForgettingReason
    #: The stored importance, raised by use, and decayed since the last use.
    importance: float
    effective_importance: float
    decayed_importance: float
    #: The time of the last use, or of the creation.
    touched_at: datetime


@dataclass(frozen=True, kw_only=True)
class ForgettingPlan:
    """The memories of one agent that the next runs of forgetting would archive."""

    agent_id: UUID
    #: The agent's active memories, up to _MOST_PLANNED.
    active: int
    #: Expired first, then faded, trivial and crowded; the least important first.
    memories: tuple[PlannedArchival, ...]

    def count(self, reason: ForgettingReason) -> int:
        """Return the number of memories with this reason."""
        return sum(memory.reason is reason for memory in self.memories)


def policy() -> ForgettingPolicy:
    """Return the installation's limits. Raises ConfigurationInvalid for one out of range."""
    return ForgettingPolicy(
        archive_below=settings.ARBOR_ARCHIVE_BELOW,
        cleanup_below=settings.ARBOR_CLEANUP_BELOW,
        grace=settings.ARBOR_FORGETTING_GRACE,
        quota=settings.ARBOR_MEMORY_QUOTA,
        knowledge=settings.ARBOR_KNOWLEDGE_QUOTAS,
    )


def fade_memories() -> JobRunResult:
    """Archive faded memories of each agent whose last run is a day ago."""
    return run_job("fade", waiting=queries.MINDS_DUE.format(checked_at="forgot_at"), step=_fade)


def clean_up_memories() -> JobRunResult:
    """Archive memories that were of little importance from the start, of each agent whose last run is a day ago."""
    return run_job("clean_up", waiting=queries.MINDS_DUE.format(checked_at="cleaned_at"), step=_clean_up)


def enforce_quotas() -> JobRunResult:
    """Archive memories above the quota of their type, of each agent with new memories or whose last run is a day ago."""
    return run_job("quota", waiting=queries.MINDS_DUE.format(checked_at="counted_at"), step=_enforce_quota)


def plan_forgetting(*, agent_id: UUID, limits: ForgettingPolicy | None = None) -> ForgettingPlan:
    """Plan the archiving of an agent's memories, with reasons, in the open transaction. One query.

    Applies the rules in Python to all active memories, so it is meant for requests of people, not for jobs.
    """
    limits = limits or policy()
    rows = fetch(queries.MEMORIES_TO_PLAN, agent=agent_id, glimpse=_GLIMPSE, most=_MOST_PLANNED)
    now = rows[0][10] if rows else datetime.now(UTC)
    forgotten: dict[UUID, ForgettingReason] = {}
    retained: defaultdict[MemoryType, list[tuple[UUID, ForgettableMemory]]] = defaultdict(list)
    states = {row[0]: _state_of(row) for row in rows}
    for memory_id, memory in states.items():
        reason = forgetting_reason(memory, now=now, policy=limits)
        if reason is not None:
            forgotten[memory_id] = reason
        else:
            retained[memory.type].append((memory_id, memory))
    for kind, of_type in retained.items():
        unprotected = [(memory_id, memory) for memory_id, memory in of_type if not memory.is_protected]
        unprotected.sort(key=lambda item: (item[1].effective_importance, item[1].created_at, item[0]))
        excess = max(0, len(of_type) - limits.quota_of(kind))
        forgotten |= dict.fromkeys(
            (memory_id for memory_id, _ in unprotected[:excess]), ForgettingReason.CROWDED
        )
    planned = [
        _planned(row, states[row[0]], forgotten[row[0]], now=now) for row in rows if row[0] in forgotten
    ]
    planned.sort(
        key=lambda memory: (list(ForgettingReason).index(memory.reason), memory.effective_importance)
    )
    return ForgettingPlan(agent_id=agent_id, active=len(rows), memories=tuple(planned))


def _state_of(row: tuple[Any, ...]) -> ForgettableMemory:
    return ForgettableMemory(
        type=MemoryType(row[1]),
        importance=row[2],
        retention=Retention(row[3]),
        created_at=row[4],
        expires_at=row[5],
        used_at=row[6],
        uses=row[7],
        needed=row[8],
    )


def _planned(
    row: tuple[Any, ...], state: ForgettableMemory, reason: ForgettingReason, *, now: datetime
) -> PlannedArchival:
    idle = days_between(state.touched_at, now)
    importance = state.effective_importance
    return PlannedArchival(
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
    reason = f"{ForgettingReason.FADED} below {limits.archive_below:g}, decayed since they were last used"
    rule = _Rule(statement=queries.FADED_MEMORIES, limits=limits, reason=reason, checked_at="forgot_at")
    return _apply_rule(tenant_id, agent_id, rule)


def _clean_up(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    reason = (
        f"{ForgettingReason.TRIVIAL}, of an importance below {limits.cleanup_below:g} that use has not raised"
    )
    rule = _Rule(statement=queries.TRIVIAL_MEMORIES, limits=limits, reason=reason, checked_at="cleaned_at")
    return _apply_rule(tenant_id, agent_id, rule)


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """A rule of forgetting that needs no more than one statement."""

    statement: str
    limits: ForgettingPolicy
    reason: str
    #: The column of `Mind` with the time of the rule's last run.
    checked_at: str


def _apply_rule(tenant_id: UUID, agent_id: UUID, rule: _Rule) -> int:
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        ids = _find(rule.statement, agent_id, rule.limits)
        return _archive_step(
            agent_id, ids, reason=rule.reason, checked_at=rule.checked_at, all_found=len(ids) < STEP
        )


def _enforce_quota(tenant_id: UUID, agent_id: UUID) -> int:
    limits = policy()
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        active = Memory.objects.filter(agent_id=agent_id, status=MemoryStatus.ACTIVE).values("type")
        counts = {
            MemoryType(kind): count
            for kind, count in active.annotate(count=Count("id")).values_list("type", "count")
        }
        archived, settled = 0, True
        for kind in MemoryType:
            quota = limits.quota_of(kind)
            excess = counts.get(kind, 0) - quota
            if excess <= 0:
                continue
            ids = _find_least(
                agent_id, limits, kind, excess=min(excess, STEP - archived), active=counts[kind]
            )
            if ids:
                reason = f"{ForgettingReason.CROWDED}, the least important above the quota of {quota:,} {kind} memories"
                archive(memory_ids=ids, reason=reason, actor=ACTOR)
            # Protected memories count but cannot be archived; without candidates, nothing more can be done.
            settled = settled and (len(ids) == excess or (not ids and archived < STEP))
            archived += len(ids)
        if settled:
            _mark_checked(agent_id, "counted_at")
        return archived


def _find_least(
    agent_id: UUID, limits: ForgettingPolicy, kind: MemoryType, *, excess: int, active: int
) -> list[UUID]:
    """Return up to `excess` of the least important memories of a type, reading as few as possible."""
    looked = STEP
    while excess > 0:
        every = looked >= active
        ids = _find(
            queries.LEAST_IMPORTANT,
            agent_id,
            limits,
            type=kind.value,
            looked=looked,
            step=excess,
            all=every,
        )
        if ids or every:
            return ids
        looked *= 4
    return []


def _find(statement: str, agent_id: UUID, limits: ForgettingPolicy, **values: Any) -> list[UUID]:
    return [
        row[0] for row in fetch(statement, **{**_figures(limits), "agent": agent_id, "step": STEP, **values})
    ]


def _figures(limits: ForgettingPolicy) -> dict[str, Any]:
    return {
        "boost": BOOST,
        "kept": RETAINED_PER_WEEK,
        "enough": queries.ENOUGH_WEEKS,
        "archive_below": limits.archive_below,
        "cleanup_below": limits.cleanup_below,
        "grace": limits.grace,
    }


def _archive_step(agent_id: UUID, ids: list[UUID], *, reason: str, checked_at: str, all_found: bool) -> int:
    if ids:
        archive(memory_ids=ids, reason=reason, actor=ACTOR)
    if all_found:
        _mark_checked(agent_id, checked_at)
    return len(ids)


def _mark_checked(agent_id: UUID, checked_at: str) -> None:
    Mind.objects.filter(agent_id=agent_id).update(**{checked_at: Now()})


def try_lock_mind(agent_id: UUID) -> bool:
    """Lock an agent's mind without waiting; return False if it is locked, and maintenance tries again later."""
    ((locked,),) = fetch(queries.TRY_LOCK_MIND, place=int.from_bytes(agent_id.bytes[8:], signed=True))
    return bool(locked)


def expire_memories() -> JobRunResult:
    """Archive expired memories, agent by agent."""
    return run_job("expire", waiting=queries.AGENTS_WITH_EXPIRED, step=_expire)


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
