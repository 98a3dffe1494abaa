"""The active skills of agents for their prompts: a column of the statements that read agents, and cached texts.

The text under a digest never changes, so a process caches it: prompts of later heartbeats cost no statement.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from threading import Lock

from apps.tenants.statements import fetch
from arbor.heartbeat.views import SkillView
from arbor.knowledge.skills import body_of

#: The most texts that a process caches, each up to 100 KB and most far less.
_CACHED = 200

_COLUMN = """(
    SELECT json_agg(json_build_array(k.name, coalesce(own.digest, nullif(k.retained_digest, ''), common.digest)) ORDER BY k.position)
    FROM knowledge_agentskill k
    LEFT JOIN knowledge_skill own ON own.tenant_id = k.tenant_id AND own.name = k.name
    LEFT JOIN knowledge_globalskill common ON common.name = k.name
    WHERE k.tenant_id = {tenant} AND k.agent_id = {agent}
)"""
_TEXTS = """
SELECT digest, text FROM knowledge_skillversion WHERE tenant_id = %(tenant)s AND digest = ANY(%(digests)s::text[])
UNION SELECT digest, text FROM knowledge_globalskillversion WHERE digest = ANY(%(digests)s::text[])
"""

#: The oldest entry first. Threads that answer conversations change the cache under the lock.
_cache: dict[str, str] = {}
_lock = Lock()


def skills_column(*, tenant: str, agent: str) -> str:
    """Return the SQL of a column: an agent's active skills in order, each as [name, digest]; null without any.

    `tenant` and `agent` are SQL expressions of the ids.
    """
    return _COLUMN.format(tenant=tenant, agent=agent)


def skill_views(columns: Iterable[Sequence[Sequence[str]] | None]) -> list[list[SkillView]]:
    """Return the skills of each column with their texts, in the tenant's transaction.

    One statement; none where no column has a skill, or where all texts are cached.
    """
    chosen = [column or () for column in columns]
    if not any(chosen):
        return [[] for _ in chosen]
    texts = skill_bodies({digest for column in chosen for _, digest in column})
    return [
        [SkillView(name=name, digest=digest, text=texts[digest]) for name, digest in column]
        for column in chosen
    ]


def skill_bodies(digests: Collection[str]) -> dict[str, str]:
    """Return the instructions of the existing skill versions among the digests, by digest. At most one statement."""
    found = {digest: body for digest in digests if (body := _cache.get(digest)) is not None}
    missing = [digest for digest in digests if digest not in found]
    if missing:
        found |= {digest: body_of(text) for digest, text in fetch(_TEXTS, digests=missing)}
        with _lock:
            _cache.update((digest, found[digest]) for digest in missing if digest in found)
            while len(_cache) > _CACHED:
                _cache.pop(next(iter(_cache)))
    return found


def with_texts(skills: Sequence[SkillView]) -> list[SkillView]:
    """Return stored skills with their texts, as a replay needs them; a skill whose version is gone has an empty text."""
    bodies = skill_bodies([skill.digest for skill in skills]) if skills else {}
    return [skill.model_copy(update={"text": bodies.get(skill.digest, "")}) for skill in skills]


def clear_text_cache() -> None:
    """Empty the cache of this process."""
    with _lock:
        _cache.clear()
