"""Archive, restore and purge memories, each with an audit record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, NamedTuple
from uuid import UUID

from django.db.models import Case, Exists, OuterRef, Q, When
from django.db.models.functions import Now

from apps.agents.services.locks import lock_schedules
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import (
    BufferItem,
    Edge,
    EmbeddingCacheEntry,
    Memory,
    MemoryConcept,
    Pin,
    Upkeep,
)
from apps.memories.services.clusters.clusters import remove_from_clusters
from apps.memories.services.graph.neighborhoods import mark_stale
from apps.memories.services.retention import queries
from apps.memories.services.store.snippets import delete_agent_code
from apps.memories.services.store.term_counts import count_terms_of, lock_minds, terms_of
from apps.signals.services.emission import emit
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, LimitReached, NotFound, PermissionDenied
from arbor.memory.content import check_text
from arbor.memory.relations import GraphNodeKind
from arbor.memory.values import MemoryStatus, Retention
from arbor.quotations import counted
from arbor.signals import SignalName, memory_data, signal

#: The most memories of one call, so that transactions stay short and audit records can list all ids.
MAX_AT_ONCE = 1_000
REASON_LENGTH = 500
#: Prefixes of actors that are persons: signed-in users, users of the command line, and their programs, by an owner's token.
_PERSONS = ("user:", "cli:", "token:")
#: The signals of acts that do not archive.
_SIGNALS: Mapping[AuditAction, SignalName] = {
    AuditAction.MEMORIES_RESTORED: SignalName.KNOWLEDGE_RESTORED,
    AuditAction.MEMORIES_PURGED: SignalName.KNOWLEDGE_PRUNED,
}


class LockedMemory(NamedTuple):
    """A memory whose row and mind are locked."""

    id: UUID
    agent_id: UUID
    status: MemoryStatus
    content_hash: bytes


#: Ids of memories by their agent.
type _IdsByAgent = dict[UUID, list[UUID]]


def archive(
    *,
    memory_ids: Sequence[UUID],
    reason: str,
    actor: str,
    action: AuditAction = AuditAction.MEMORIES_ARCHIVED,
) -> int:
    """Archive memories in the open transaction; return how many were active.

    `restore` makes them active again. Writes one audit record for each agent, with the ids.
    Raises NotFound for unknown ids, LimitReached for more than MAX_AT_ONCE, Invalid for no actor, or for a reason that is empty
    or too long; nothing is written then.
    """
    by_agent = _lock(memory_ids, reason=reason, actor=actor, of=MemoryStatus.ACTIVE)
    ids = _all_ids(by_agent)
    if ids:
        Memory.objects.filter(id__in=ids).update(status=MemoryStatus.ARCHIVED, archived_at=Now())
        _mark_derived_stale(ids)
        # Of the jobs, only `reindex_words` needs archived memories. `restore` sets the flags again, except `unweighed`.
        Upkeep.objects.filter(memory_id__in=ids).update(
            stale=False, unclustered=False, unextracted=False, unweighed=False
        )
        count_terms_of_memories(ids, sign=-1)
        _record(action, by_agent, verb="archived", reason=reason, actor=actor)
    return len(ids)


def restore(*, memory_ids: Sequence[UUID], reason: str, actor: str, for_good: bool = False) -> int:
    """Restore archived memories in the open transaction; return how many were archived.

    An expiry that has passed is removed, and the memory counts as reinforced now, so that its decay starts again. The
    memory can be forgotten again by the same rules, unless it is restored `for_good`, which makes it permanent.
    Raises the same errors as `archive`.
    """
    by_agent = _lock(memory_ids, reason=reason, actor=actor, of=MemoryStatus.ARCHIVED)
    ids = _all_ids(by_agent)
    if ids:
        _activate(ids, for_good=for_good)
        # A restoration shows that the memories matter, so it counts as a reinforcement.
        reinforce(dict.fromkeys(ids, 1))
        set_flags(ids)
        count_terms_of_memories(ids, sign=1)
        _mark_derived_stale(ids)
        verb = "restored for good" if for_good else "restored"
        _record(AuditAction.MEMORIES_RESTORED, by_agent, verb=verb, reason=reason, actor=actor)
    return len(ids)


def purge(
    *,
    memory_ids: Sequence[UUID],
    reason: str,
    actor: str,
    saved_seeds: Mapping[UUID, Sequence[UUID]] = MappingProxyType({}),
) -> int:
    """Delete archived memories and all data that belongs to them for good, in the open transaction; return how many were deleted.

    Only persons may (actors `user:…` or `cli:…`), and an owner's programs (`token:…`). The audit record has ids and content hashes,
    but no content, and the ids of the `saved_seeds` of each agent, which still contain the memories. Prompts and replies of model
    calls about the memories are emptied, and so are the turns of conversations that the memories were stored from; code snippets
    of the memories' texts are deleted.
    Texts derived earlier, such as an episode's summary or a heartbeat's trace, stay unchanged.
    Raises PermissionDenied for other actors, Invalid for a memory that is not archived, and the errors of `archive`.
    """
    if not actor.startswith(_PERSONS):
        raise PermissionDenied(
            f"only a person removes memories for good (user:…, cli:… or token:…), not {actor!r}"
        )
    _check(memory_ids, reason=reason, actor=actor)
    ids = sorted(set(memory_ids))
    fetch(queries.LOCK_CALLS, ids=ids, id_texts=[str(memory_id) for memory_id in ids])
    # A heartbeat locks buffer items before the mind, and this function deletes some after it.
    lock_schedules(set(Memory.objects.filter(id__in=ids).values_list("agent_id", flat=True)))
    memories = lock_memories(memory_ids)
    if active := [memory.id for memory in memories if memory.status != MemoryStatus.ARCHIVED]:
        raise Invalid(f"archive memories before you remove them for good; not archived: {first_ids(active)}")
    ids = [memory.id for memory in memories]
    if not ids:
        return 0
    by_agent: _IdsByAgent = defaultdict(list)
    hashes: dict[UUID, str] = {}
    for memory in memories:
        by_agent[memory.agent_id].append(memory.id)
        hashes[memory.id] = memory.content_hash.hex()
    _mark_derived_stale(ids)
    change(queries.EMPTY_CALLS, ids=ids, id_texts=[str(memory_id) for memory_id in ids])
    change(queries.EMPTY_TURNS, ids=ids)
    digests = {memory.content_hash for memory in memories}
    kind = GraphNodeKind.MEMORY.value
    ends = Q(source_kind=kind, source_id__in=ids) | Q(target_kind=kind, target_id__in=ids)
    Edge.objects.filter(ends, agent_id__in=list(by_agent)).delete()
    # Delete equal buffer items too, which would be promoted to memories again.
    repeated = Q(promoted_to_id__in=ids) | Q(content_hash__in=digests)
    BufferItem.objects.filter(repeated, agent_id__in=list(by_agent)).delete()
    has_fences = Q(content__contains="```") | Q(content__contains="~~~")
    texts: dict[UUID, list[str]] = defaultdict(list)
    with_code = Memory.objects.filter(has_fences, id__in=ids)
    for agent_id, text in with_code.values_list("agent_id", "content"):
        texts[agent_id].append(text)
    for agent_id, own in texts.items():
        delete_agent_code(agent_id=agent_id, texts=own)
    # The rows of access, upkeep, links and cluster members are deleted by cascade.
    Memory.objects.filter(id__in=ids).delete()
    EmbeddingCacheEntry.objects.filter(content_hash__in=digests).delete()
    _record(
        AuditAction.MEMORIES_PURGED,
        by_agent,
        verb="removed for good",
        reason=reason,
        actor=actor,
        saved_seeds=saved_seeds,
        content_hashes=hashes,
    )
    return len(ids)


def _lock(memory_ids: Sequence[UUID], *, reason: str, actor: str, of: MemoryStatus) -> _IdsByAgent:
    """Lock memories, and return those with the status `of`, by agent."""
    _check(memory_ids, reason=reason, actor=actor)
    by_agent: _IdsByAgent = defaultdict(list)
    for memory in lock_memories(memory_ids):
        if memory.status == of:
            by_agent[memory.agent_id].append(memory.id)
    return by_agent


def _check(memory_ids: Sequence[UUID], *, reason: str, actor: str) -> None:
    if len(set(memory_ids)) > MAX_AT_ONCE:
        raise LimitReached(f"one call takes at most {MAX_AT_ONCE:,} memories, got {len(set(memory_ids)):,}")
    if not 1 <= (length := len(reason.strip())) <= REASON_LENGTH:
        raise Invalid(f"a reason is 1 to {REASON_LENGTH} characters, got {length}")
    check_text("a reason", reason)
    if not actor.strip():
        raise Invalid(f"the actor is `user:NAME`, `cli:NAME`, `token:NAME` or `system:PART`, got {actor!r}")


def lock_memories(memory_ids: Sequence[UUID]) -> list[LockedMemory]:
    """Lock memories and their minds; return the memories in the order of ids. Raises NotFound."""
    ids = sorted(set(memory_ids))
    memories = Memory.objects.filter(id__in=ids)
    owners: dict[UUID, UUID] = dict(memories.values_list("id", "agent_id"))
    if missing := [memory_id for memory_id in ids if memory_id not in owners]:
        raise NotFound(f"this tenant has no memory {first_ids(missing)}")
    if not ids:
        return []
    lock_minds(owners.values())
    # In the order of ids, as everywhere, to avoid deadlocks. FOR NO KEY UPDATE, because a concurrent recall may insert
    # references to these memories.
    locked = memories.order_by("id").select_for_update(no_key=True)
    found = [
        LockedMemory(memory_id, agent_id, MemoryStatus(status), bytes(digest))
        for memory_id, agent_id, status, digest in locked.values_list(
            "id", "agent_id", "status", "content_hash"
        )
    ]
    if len(found) != len(ids):
        deleted = set(ids) - {memory.id for memory in found}
        raise NotFound(f"this tenant no longer has memory {first_ids(sorted(deleted))}")
    return found


def _all_ids(by_agent: _IdsByAgent) -> list[UUID]:
    return sorted(memory_id for ids in by_agent.values() for memory_id in ids)


def first_ids(ids: Sequence[UUID]) -> str:
    """Return the first three ids and the number of the others, for messages."""
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ", ".join(map(str, ids[:3])) + more


def _activate(ids: Sequence[UUID], *, for_good: bool) -> None:
    """Make archived memories active, without an expiry that has passed."""
    memories = Memory.objects.filter(id__in=ids)
    if for_good:
        changes: dict[str, Any] = {"expires_at": None, "retention": Retention.PERMANENT}
        # A pin remains while its memory is archived, and would give back the retention from before when it is removed.
        Pin.objects.filter(memory_id__in=ids).update(**changes)
    else:
        changes = {"expires_at": Case(When(expires_at__gt=Now(), then="expires_at"))}
    memories.update(status=MemoryStatus.ACTIVE, archived_at=None, **changes)


def count_terms_of_memories(ids: Sequence[UUID], *, sign: int) -> None:
    """Add (`sign` 1) or subtract (-1) the terms of memories in the counts of their agents. Two statements."""
    terms: dict[UUID, list[list[int]]] = defaultdict(list)
    for agent_id, lexical in Memory.objects.filter(id__in=ids).values_list("agent_id", "lexical"):
        terms[agent_id].append(terms_of(lexical))
    count_terms_of(terms, sign=sign)


def _mark_derived_stale(ids: Sequence[UUID]) -> None:
    """Mark the neighborhoods and clusters of these memories stale."""
    mark_stale(ids)
    remove_from_clusters(ids)


def _record(
    action: AuditAction,
    by_agent: _IdsByAgent,
    *,
    verb: str,
    reason: str,
    actor: str,
    saved_seeds: Mapping[UUID, Sequence[UUID]] = MappingProxyType({}),
    **detail: Any,
) -> None:
    for agent_id, ids in sorted(by_agent.items()):
        of_agent: dict[str, Any] = {
            name: {str(memory_id): values[memory_id] for memory_id in ids} for name, values in detail.items()
        }
        if not of_agent:
            of_agent = {"memory_ids": [str(memory_id) for memory_id in ids]}
        if seeds := saved_seeds.get(agent_id):
            of_agent["saved_seeds"] = [str(seed_id) for seed_id in seeds]
        record(
            action=action,
            actor=actor,
            agent_id=agent_id,
            message=f"{verb} {counted(len(ids), 'memory', 'memories')}: {reason.strip()}",
            detail={"reason": reason.strip(), **of_agent},
        )
    name = _SIGNALS.get(action, SignalName.KNOWLEDGE_ARCHIVED)
    emit(
        *(
            signal(name, agent_id, **memory_data(ids), actor=actor)
            for agent_id, ids in sorted(by_agent.items())
        )
    )


def reinforce(times: Mapping[UUID, int]) -> None:
    """Add numbers of times to the reinforcements of memories, and restart their decay. One statement."""
    change(queries.REINFORCE, ids=list(times), times=list(times.values()))


def set_flags(memory_ids: Sequence[UUID]) -> None:
    """Set the maintenance flags of restored memories. One statement."""
    linked = MemoryConcept.objects.filter(memory_id=OuterRef("memory_id"))
    Upkeep.objects.filter(memory_id__in=list(memory_ids)).update(
        stale=True, unclustered=True, unextracted=~Exists(linked)
    )


def flag_for_reindexing(memory_ids: Sequence[UUID]) -> None:
    """Flag memories so that `reindex_words` indexes the words of their details again. One statement."""
    Upkeep.objects.filter(memory_id__in=list(memory_ids)).update(unindexed=True)
