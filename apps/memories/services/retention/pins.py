"""Pin memories, so that they neither decay nor are archived by maintenance, and unpin them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from uuid import UUID

from django.db.models import Count
from django.utils import timezone

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import Memory, Pin
from apps.memories.services.retention.archive import REASON_LENGTH, first_ids, lock_memories, reinforce
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, LimitReached
from arbor.memory.content import check_line
from arbor.memory.values import MemoryStatus, Retention
from arbor.quotations import counted
from arbor.signals import SignalName, signal

#: The most pinned memories of one agent: quotas cannot archive them.
MAX_PINS = 500


def pin(*, memory_ids: Sequence[UUID], actor: str, reason: str = "") -> int:
    """Pin memories in the open transaction; return how many were not pinned before.

    A pinned memory does not decay, has no expiry, and is archived by people only. `unpin` restores the values from before.
    Raises NotFound for unknown ids, Invalid for an archived memory or a reason that is too long, and LimitReached above
    MAX_PINS; nothing is written then.
    """
    check_line("a reason", reason, REASON_LENGTH)
    locked = lock_memories(memory_ids)
    if archived := [memory.id for memory in locked if memory.status != MemoryStatus.ACTIVE]:
        raise Invalid(f"restore memories before you pin them; archived: {first_ids(archived)}")
    memories = list(
        Memory.objects.filter(id__in=[memory.id for memory in locked], pin__isnull=True)
        .only("tenant_id", "agent_id", "decay_rate", "retention", "expires_at")
        .order_by("id")
    )
    by_agent: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for memory in memories:
        by_agent[memory.agent_id].append(memory.id)
    _require_room(by_agent)
    Pin.objects.bulk_create(_pin_of(memory, actor) for memory in memories)
    pinned = [memory.id for memory in memories]
    Memory.objects.filter(id__in=pinned).update(
        decay_rate=0.0, retention=Retention.PERMANENT, expires_at=None
    )
    _record(by_agent, verb="pinned", actor=actor, reason=reason)
    return len(pinned)


def unpin(*, memory_ids: Sequence[UUID], actor: str, reason: str = "") -> int:
    """Unpin memories in the open transaction; return how many were pinned.

    The memories get back their rate of decay, their retention, and an expiry that has not passed. Their decay starts now,
    because they did not decay while they were pinned. Raises NotFound for unknown ids, and Invalid for a reason that is too long.
    """
    check_line("a reason", reason, REASON_LENGTH)
    ids = [memory.id for memory in lock_memories(memory_ids)]
    pins = list(Pin.objects.filter(memory_id__in=ids).order_by("memory_id"))
    by_agent: defaultdict[UUID, list[UUID]] = defaultdict(list)
    for former in pins:
        _give_back(former)
        by_agent[former.agent_id].append(former.memory_id)
    unpinned = [former.memory_id for former in pins]
    Pin.objects.filter(memory_id__in=unpinned).delete()
    # Zero further reinforcements, at the present time: the decay starts again.
    reinforce(dict.fromkeys(unpinned, 0))
    _record(by_agent, verb="unpinned", actor=actor, reason=reason)
    return len(unpinned)


def move_pin(*, old_id: UUID, new_id: UUID) -> None:
    """Move the pin of a memory to the memory that replaces it, in the open transaction; the old one gets its own values back."""
    former = Pin.objects.filter(memory_id=old_id)
    for moved in former:
        _give_back(moved)
    if Pin.objects.filter(memory_id=new_id).exists():
        former.delete()
        return
    former.update(memory_id=new_id)
    Memory.objects.filter(id=new_id).update(decay_rate=0.0, retention=Retention.PERMANENT, expires_at=None)


def _give_back(former: Pin) -> None:
    """Give a memory back its rate of decay, its retention, and an expiry that has not passed."""
    unexpired = former.expires_at is not None and former.expires_at > timezone.now()
    Memory.objects.filter(id=former.memory_id).update(
        decay_rate=former.decay_rate,
        retention=former.retention,
        expires_at=former.expires_at if unexpired else None,
    )


def _pin_of(memory: Memory, actor: str) -> Pin:
    return Pin(
        tenant_id=current_tenant(),
        memory_id=memory.id,
        agent_id=memory.agent_id,
        pinned_by=actor,
        decay_rate=memory.decay_rate,
        retention=memory.retention,
        expires_at=memory.expires_at,
    )


def _require_room(wanted: Mapping[UUID, Sequence[UUID]]) -> None:
    """Raise LimitReached if an agent would have more than MAX_PINS."""
    counts = (
        Pin.objects.filter(agent_id__in=list(wanted)).values("agent_id").annotate(pins=Count("memory_id"))
    )
    pins = dict(counts.values_list("agent_id", "pins"))
    for agent_id, ids in wanted.items():
        if (total := pins.get(agent_id, 0) + len(ids)) > MAX_PINS:
            raise LimitReached(
                f"an agent has at most {MAX_PINS} pinned memories, this would make {total}; unpin others first"
            )


def _record(by_agent: Mapping[UUID, Sequence[UUID]], *, verb: str, actor: str, reason: str) -> None:
    why = f": {reason.strip()}" if reason.strip() else ""
    for agent_id, ids in sorted(by_agent.items()):
        record(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            agent_id=agent_id,
            message=f"{verb} {counted(len(ids), 'memory', 'memories')}{why}",
            detail={"memory_ids": [str(memory_id) for memory_id in ids], "reason": reason.strip()},
        )
    emit(
        *(
            signal(SignalName.MEMORY_CORRECTED, agent_id, memory=memory_id, changes=[verb], actor=actor)
            for agent_id, ids in sorted(by_agent.items())
            for memory_id in ids
        )
    )
