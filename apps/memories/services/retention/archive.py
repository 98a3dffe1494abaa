"""Archive, restore and purge memories, each with an audit record."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.memories.models import EmbeddingCacheEntry, Memory
from apps.memories.services.clusters.clusters import mark_clusters_stale
from apps.memories.services.graph.neighborhoods import mark_stale
from apps.memories.services.store.term_counts import count_terms, lock_minds, terms_of
from apps.tenants.packing import sql_literal
from apps.tenants.statements import change, fetch
from arbor.errors import Invalid, LimitReached, NotFound, PermissionDenied
from arbor.memory.values import MemoryStatus, Retention

#: Memories that one act takes: it stays short, and its record names all of them.
MOST_AT_ONCE = 1_000
REASON_LENGTH = 500
#: Who is a person: somebody signed in, or somebody at the installation's command line.
_PERSONS = ("user:", "cli:")

_OWNERS = (
    "SELECT id, agent_id FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])"
)
# In the order of their ids, as everybody locks memories; no stronger than it must be: an agent that recalls one of them
# meanwhile refers to it from its counts, and holds clusters that are marked below.
_LOCKED = """
SELECT id, agent_id, status, content_hash FROM memories_memory
WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[]) ORDER BY id FOR NO KEY UPDATE
"""
_ARCHIVE = """
UPDATE memories_memory SET status = 'archived', archived_at = now()
WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""
# An expiry that has passed would take it away again at once.
_RESTORE = """
UPDATE memories_memory SET status = 'active', archived_at = NULL,
    expires_at = CASE WHEN %(for_good)s OR expires_at <= now() THEN NULL ELSE expires_at END,
    retention = CASE WHEN %(for_good)s THEN %(permanent)s ELSE retention END
WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""
# An archived memory has no maintenance flags; `restore` sets them again.
_CLEAR_FLAGS = """
UPDATE memories_upkeep SET stale = false, unclustered = false, unextracted = false, unweighed = false
WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
"""
_DELETE_EDGES = """
DELETE FROM memories_edge WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[]) AND (
    source_kind = 'memory' AND source_id = ANY(%(ids)s::uuid[])
    OR target_kind = 'memory' AND target_id = ANY(%(ids)s::uuid[])
)
"""
# The database removes what belongs to a memory with it: its access, upkeep, links, places in clusters.
# What the agent's buffer still has of it would be remembered again.
_CLEAR_BUFFER = """
DELETE FROM memories_bufferitem WHERE tenant_id = %(tenant)s AND agent_id = ANY(%(agents)s::uuid[])
    AND (promoted_to_id = ANY(%(ids)s::uuid[]) OR content_hash = ANY(%(digests)s::bytea[]))
"""
_PURGE = "DELETE FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])"

# What models were asked about a memory repeats its text: alone, within an episode, or in a conversation that it is a turn of
# or that recalled it. One that is still open is ended; what else it was about is asked again.
_EMPTY_CALLS = f"""
UPDATE heartbeats_externalcall c SET request = {sql_literal({})}, reply = '', error = '', dropped = '[]'::jsonb,
    sections = {sql_literal([])},
    status = CASE WHEN c.status IN ('pending', 'running') THEN 'retried' ELSE c.status END,
    ended_at = coalesce(c.ended_at, now()), due_at = NULL, lease_until = NULL
WHERE c.tenant_id = %(tenant)s AND c.agent_id = ANY(%(agents)s::uuid[]) AND c.subject_key <> '' AND (
    c.subject -> 'memories' ?| %(names)s::text[]
    OR c.subject ->> 'episode' IN (
        SELECT episode_id::text FROM memories_memory
        WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[]) AND episode_id IS NOT NULL
    )
    OR 'chat:' || (c.subject ->> 'chat') IN (
        SELECT session FROM memories_memory WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
    )
    OR EXISTS (
        SELECT FROM jsonb_array_elements(c.subject -> 'recalled') recalled
        WHERE recalled ->> 'id' = ANY(%(names)s::text[])
    )
)
"""  # noqa: S608 (our own words)
# A turn of a conversation is the same text once more.
_EMPTY_TURNS = """
UPDATE contacts_chatmessage t SET content = '', detail = '{}'::jsonb, error = 'purged'
FROM memories_memory m
WHERE m.tenant_id = %(tenant)s AND m.id = ANY(%(ids)s::uuid[]) AND m.session LIKE 'chat:%%'
    AND t.tenant_id = m.tenant_id AND t.session_id::text = substr(m.session, 6) AND t.content = m.content
"""

type _Locked = dict[UUID, list[UUID]]


def archive(
    *,
    memory_ids: Sequence[UUID],
    reason: str,
    actor: str,
    action: AuditAction = AuditAction.MEMORIES_ARCHIVED,
) -> int:
    """Archive memories in the open transaction; return how many were active.

    Nothing is lost: `restore` brings them back. One record in the audit for each agent, which names them.
    Raises NotFound for ids that this tenant does not have, LimitReached for more than MOST_AT_ONCE, and Invalid for a
    reason that is empty or too long; nothing is written then.
    """
    by_agent = _lock(memory_ids, reason=reason, actor=actor, of=MemoryStatus.ACTIVE)
    ids = _all(by_agent)
    if ids:
        change(_ARCHIVE, ids=ids)
        _mark_around(ids)
        change(_CLEAR_FLAGS, ids=ids)
        _count_words(ids, sign=-1)
        _record(action, by_agent, verb="archived", reason=reason, actor=actor)
    return len(ids)


def restore(*, memory_ids: Sequence[UUID], reason: str, actor: str, for_good: bool = False) -> int:
    """Restore archived memories in the open transaction; return how many were archived.

    An expiry that has passed is dropped, and the memory counts as reinforced now, so that its decay starts again. It
    can be forgotten again by the same rules, unless it is restored `for_good`, which makes it permanent.
    Raises what `archive` does.
    """
    by_agent = _lock(memory_ids, reason=reason, actor=actor, of=MemoryStatus.ARCHIVED)
    ids = _all(by_agent)
    if ids:
        change(_RESTORE, ids=ids, for_good=for_good, permanent=Retention.PERMANENT.value)
        # Somebody said that it matters, which is worth a reinforcement.
        reinforce(dict.fromkeys(ids, 1))
        take_up(ids)
        _count_words(ids, sign=1)
        _mark_around(ids)
        verb = "restored for good" if for_good else "restored"
        _record(AuditAction.MEMORIES_RESTORED, by_agent, verb=verb, reason=reason, actor=actor)
    return len(ids)


def purge(*, memory_ids: Sequence[UUID], reason: str, actor: str) -> int:
    """Remove archived memories and everything that hangs on them, for good, in the transaction that is open.

    Only a person may (an actor `user:…` or `cli:…`). The audit keeps each one's id and content hash, not its content.
    What models were asked about it, and answered, is emptied. What was made from a memory before, such as an episode's
    summary or a heartbeat's trace, is not rewritten.
    Raises PermissionDenied for anybody else, Invalid when one is not archived, and what `archive` does.
    """
    if not actor.startswith(_PERSONS):
        raise PermissionDenied(f"only a person removes memories for good (user:… or cli:…), not {actor!r}")
    _check(memory_ids, reason=reason, actor=actor)
    rows = _locked_rows(memory_ids)
    if active := [row[0] for row in rows if row[2] != MemoryStatus.ARCHIVED]:
        raise Invalid(f"a memory is archived before it is removed for good; not archived: {_some(active)}")
    ids = [row[0] for row in rows]
    if not ids:
        return 0
    by_agent: _Locked = defaultdict(list)
    hashes: dict[UUID, str] = {}
    for memory_id, agent_id, _, digest in rows:
        by_agent[agent_id].append(memory_id)
        hashes[memory_id] = bytes(digest).hex()
    _mark_around(ids)
    change(_EMPTY_CALLS, ids=ids, names=[str(memory_id) for memory_id in ids], agents=list(by_agent))
    change(_EMPTY_TURNS, ids=ids)
    change(_DELETE_EDGES, ids=ids, agents=list(by_agent))
    change(_CLEAR_BUFFER, ids=ids, agents=list(by_agent), digests=[bytes(row[3]) for row in rows])
    change(_PURGE, ids=ids)
    EmbeddingCacheEntry.objects.filter(content_hash__in={bytes(row[3]) for row in rows}).delete()
    _record(
        AuditAction.MEMORIES_PURGED,
        by_agent,
        verb="removed for good",
        reason=reason,
        actor=actor,
        content_hashes=hashes,
    )
    return len(ids)


def _lock(memory_ids: Sequence[UUID], *, reason: str, actor: str, of: MemoryStatus) -> _Locked:
    """Lock the memories, and return those of this status by agent."""
    _check(memory_ids, reason=reason, actor=actor)
    by_agent: _Locked = defaultdict(list)
    for memory_id, agent_id, status, _ in _locked_rows(memory_ids):
        if status == of:
            by_agent[agent_id].append(memory_id)
    return by_agent


def _check(memory_ids: Sequence[UUID], *, reason: str, actor: str) -> None:
    if len(set(memory_ids)) > MOST_AT_ONCE:
        raise LimitReached(f"one act takes at most {MOST_AT_ONCE:,} memories, got {len(set(memory_ids)):,}")
    if not 1 <= len(reason.strip()) <= REASON_LENGTH or "\0" in reason:
        raise Invalid(f"a reason is 1 to {REASON_LENGTH} characters without NUL, got {len(reason)}")
    if not actor.strip():
        raise Invalid("say who does it: `user:NAME`, `cli:NAME` or `system:PART`")


def _locked_rows(memory_ids: Sequence[UUID]) -> list[tuple[Any, ...]]:
    ids = sorted(set(memory_ids))
    owners = dict(fetch(_OWNERS, ids=ids))
    if missing := [memory_id for memory_id in ids if memory_id not in owners]:
        raise NotFound(f"this tenant has no memory {_some(missing)}")
    if not ids:
        return []
    lock_minds(owners.values())
    rows = fetch(_LOCKED, ids=ids)
    if len(rows) != len(ids):
        deleted = set(ids) - {row[0] for row in rows}
        raise NotFound(f"this tenant no longer has memory {_some(sorted(deleted))}")
    return rows


def _all(by_agent: _Locked) -> list[UUID]:
    return sorted(memory_id for ids in by_agent.values() for memory_id in ids)


def _some(ids: Sequence[UUID]) -> str:
    more = f" and {len(ids) - 3} more" if len(ids) > 3 else ""
    return ", ".join(map(str, ids[:3])) + more


def _count_words(ids: Sequence[UUID], *, sign: int) -> None:
    words: dict[UUID, list[list[int]]] = defaultdict(list)
    for agent_id, lexical in Memory.objects.filter(id__in=ids).values_list("agent_id", "lexical"):
        words[agent_id].append(terms_of(lexical))
    for agent_id, terms in sorted(words.items()):
        count_terms(agent_id, terms, sign=sign)


def _mark_around(ids: Sequence[UUID]) -> None:
    """Mark the neighborhoods and clusters of these memories stale."""
    mark_stale(ids)
    mark_clusters_stale(ids)


def _record(
    action: AuditAction, by_agent: _Locked, *, verb: str, reason: str, actor: str, **detail: Any
) -> None:
    for agent_id, ids in sorted(by_agent.items()):
        of_agent: dict[str, Any] = {
            name: {str(memory_id): values[memory_id] for memory_id in ids} for name, values in detail.items()
        }
        if not of_agent:
            of_agent = {"memory_ids": [str(memory_id) for memory_id in ids]}
        record(
            action=action,
            actor=actor,
            agent_id=agent_id,
            message=f"{verb} {len(ids):,} {'memory' if len(ids) == 1 else 'memories'}: {reason.strip()}",
            detail={"reason": reason.strip(), **of_agent},
        )


_REINFORCE = """
INSERT INTO memories_memoryaccess (tenant_id, memory_id, count, reinforced, reinforced_at)
SELECT %(tenant)s, r.id, 0, r.times, now() FROM unnest(%(ids)s::uuid[], %(times)s::int[]) AS r(id, times) ORDER BY r.id
ON CONFLICT (tenant_id, memory_id) DO UPDATE
SET reinforced = memories_memoryaccess.reinforced + EXCLUDED.reinforced, reinforced_at = EXCLUDED.reinforced_at
"""
_SET_FLAGS = """
UPDATE memories_upkeep u SET stale = true, unclustered = true, unextracted = NOT EXISTS (
    SELECT FROM memories_memoryconcept c WHERE c.tenant_id = u.tenant_id AND c.memory_id = u.memory_id
)
WHERE tenant_id = %(tenant)s AND memory_id = ANY(%(ids)s::uuid[])
"""


def reinforce(times: Mapping[UUID, int]) -> None:
    """Count how often each memory was remembered again; their decay starts again. One statement."""
    change(_REINFORCE, ids=list(times), times=list(times.values()))


def take_up(memory_ids: Sequence[UUID]) -> None:
    """Set the maintenance flags of memories that were archived. One statement."""
    change(_SET_FLAGS, ids=list(memory_ids))
