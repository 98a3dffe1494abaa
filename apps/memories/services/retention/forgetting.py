"""Forgetting: find memories by each rule in one statement, and archive them agent by agent in bounded steps.

The rules are in `arbor.memory.forgetting`. The statements in `queries` implement the rules in SQL; a test compares both. A
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
from apps.memories.services.retention.archive import MAX_AT_ONCE, archive
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
#: The most memories that one step archives.
STEP = MAX_AT_ONCE
#: The most memories that a plan reads, and the characters that it shows of each.
_MAX_PLANNED = 50_000
_EXCERPT_LENGTH = 160


@dataclass(frozen=True, kw_only=True)
class PlannedArchival:
    """A memory to be archived, with the reason."""

    memory_id: UUID
    type: MemoryType
    #: The beginning of the memory's text.
    content: str
    reason: ForgettingReason
    #: The importance: as stored, raised by use, and then decayed since the last use.
    importance: float
    effective_importance: float
    decayed_importance: float
    #: The time of the last use, or of the creation.
    touched_at: datetime


@dataclass(frozen=True, kw_only=True)
class ForgettingPlan:
    """The memories of one agent that the next runs of forgetting would archive."""

    agent_id: UUID
    #: The agent's active memories, up to _MAX_PLANNED.
    active: int
    #: Expired first, then faded, trivial and crowded; the least important first.
    memories: tuple[PlannedArchival, ...]

    def count(self, reason: ForgettingReason) -> int:
        """Return the number of memories with this reason."""
        return sum(memory.reason is reason for memory in self.memories)


def forgetting_policy() -> ForgettingPolicy:
    """Return the limits from the settings. Raises ConfigurationInvalid for a limit out of range."""
    return ForgettingPolicy(
        archive_below=settings.ARBOR_ARCHIVE_BELOW,
        cleanup_below=settings.ARBOR_CLEANUP_BELOW,
        grace=settings.ARBOR_FORGETTING_GRACE,
        quota=settings.ARBOR_MEMORY_QUOTA,
        knowledge=settings.ARBOR_KNOWLEDGE_QUOTAS,
    )


def fade_memories() -> JobRunResult:
    """Archive faded memories, of each agent whose last run is a day ago."""
    return run_job("fade", waiting=queries.MINDS_DUE.format(checked_at="forgot_at"), step=_fade)


def clean_up_memories() -> JobRunResult:
    """Archive trivial memories, of each agent whose last run is a day ago."""
    return run_job("clean_up", waiting=queries.MINDS_DUE.format(checked_at="cleaned_at"), step=_clean_up)


def enforce_quotas() -> JobRunResult:
    """Archive memories above the quota of their type, of each agent with new memories or whose last run is a day ago."""
    return run_job("quota", waiting=queries.MINDS_DUE.format(checked_at="counted_at"), step=_enforce_quota)


def plan_forgetting(*, agent_id: UUID, limits: ForgettingPolicy | None = None) -> ForgettingPlan:
    """Plan the archiving of an agent's memories, with reasons, in the open transaction. One statement.

    Applies the rules in Python to all active memories, which is for requests of people, not for jobs.
    """
    limits = limits or forgetting_policy()
    rows = fetch(queries.MEMORIES_TO_PLAN, agent=agent_id, excerpt_length=_EXCERPT_LENGTH, most=_MAX_PLANNED)
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
    limits = forgetting_policy()
    reason = f"{ForgettingReason.FADED} below {limits.archive_below:g}, decayed since they were last used"
    rule = _Rule(statement=queries.FADED_MEMORIES, limits=limits, reason=reason, checked_at="forgot_at")
    return _apply_rule(tenant_id, agent_id, rule)


def _clean_up(tenant_id: UUID, agent_id: UUID) -> int:
    limits = forgetting_policy()
    reason = (
        f"{ForgettingReason.TRIVIAL}, of an importance below {limits.cleanup_below:g} that use has not raised"
    )
    rule = _Rule(statement=queries.TRIVIAL_MEMORIES, limits=limits, reason=reason, checked_at="cleaned_at")
    return _apply_rule(tenant_id, agent_id, rule)


@dataclass(frozen=True, kw_only=True)
class _Rule:
    """A rule of forgetting whose memories one statement finds."""

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
        if ids:
            archive(memory_ids=ids, reason=rule.reason, actor=ACTOR)
        if len(ids) < STEP:
            _mark_checked(agent_id, rule.checked_at)
        return len(ids)


def _enforce_quota(tenant_id: UUID, agent_id: UUID) -> int:
    limits = forgetting_policy()
    with tenant_transaction(tenant_id):
        if not try_lock_mind(agent_id):
            return 0
        active = Memory.objects.filter(agent_id=agent_id, status=MemoryStatus.ACTIVE).values("type")
        counts = {
            MemoryType(kind): count
            for kind, count in active.annotate(count=Count("id")).values_list("type", "count")
        }
        archived, all_checked = 0, True
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
            # Protected memories count but cannot be archived: a type without candidates needs no further step.
            all_checked = all_checked and (len(ids) == excess or (not ids and archived < STEP))
            archived += len(ids)
        if all_checked:
            _mark_checked(agent_id, "counted_at")
        return archived


def _find_least(
    agent_id: UUID, limits: ForgettingPolicy, kind: MemoryType, *, excess: int, active: int
) -> list[UUID]:
    """Return up to `excess` of the least important of the agent's `active` memories of a type, reading as few as possible."""
    candidates = STEP
    while excess > 0:
        reads_all = candidates >= active
        ids = _find(
            queries.LEAST_IMPORTANT,
            agent_id,
            limits,
            type=kind.value,
            candidates=candidates,
            step=excess,
            all=reads_all,
        )
        if ids or reads_all:
            return ids
        candidates *= 4
    return []


def _find(statement: str, agent_id: UUID, limits: ForgettingPolicy, **values: Any) -> list[UUID]:
    return [
        row[0]
        for row in fetch(statement, **{**_rule_values(limits), "agent": agent_id, "step": STEP, **values})
    ]


def _rule_values(limits: ForgettingPolicy) -> dict[str, Any]:
    return {
        "boost": BOOST,
        "retained": RETAINED_PER_WEEK,
        "most_weeks": queries.MAX_WEEKS,
        "archive_below": limits.archive_below,
        "cleanup_below": limits.cleanup_below,
        "grace": limits.grace,
    }


def _mark_checked(agent_id: UUID, checked_at: str) -> None:
    Mind.objects.filter(agent_id=agent_id).update(**{checked_at: Now()})


def try_lock_mind(agent_id: UUID) -> bool:
    """Lock an agent's mind without waiting; return False if another transaction has locked it, and maintenance tries again later."""
    ((locked,),) = fetch(queries.TRY_LOCK_MIND, key=int.from_bytes(agent_id.bytes[8:], signed=True))
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
