"""One putting in order of an agent's clusters: what is computed of what was read, and what of that is written."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

import numpy as np

from apps.memories.services.clusters.reading import Order
from apps.memories.services.embedding.literals import halfvec_texts
from apps.memories.services.store.remember import ALL_MEMORIES
from apps.tenants.statements import change, fetch
from arbor.ids import uuid7
from arbor.memory.cluster_links import Link, Placed, middle_half, relate
from arbor.memory.cluster_order import arrange
from arbor.memory.clusters import Felt, Theme, cosines_among, feeling_of
from arbor.memory.keywords import READ_CHARACTERS, READ_MEMBERS, keywords, name_of, terms_in

#: A membership is written again when its strength has changed by more.
_CHANGED_BY = 0.005

_TEXTS = """
SELECT id, left(content, %(characters)s) FROM memories_memory
WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])
"""
_FREQUENCIES = """
SELECT term, memories FROM memories_term
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND term = ANY(%(terms)s::int[])
"""
# Whoever is first: nothing that was read may have been put in order, or moved to other vectors, since.
_TAKE = """
UPDATE memories_mind SET clustered_at = now()
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND clustered_at IS NOT DISTINCT FROM %(before)s
    AND embedding_model = %(model)s AND embedding_dimension = %(dimension)s
"""
# Memories that joined a dissolved theme after it was read look for another one.
_DISSOLVE = """
WITH gone AS (
    DELETE FROM memories_clustermember WHERE tenant_id = %(tenant)s AND cluster_id = ANY(%(ids)s::uuid[])
    RETURNING memory_id
)
UPDATE memories_upkeep SET unclustered = true
WHERE tenant_id = %(tenant)s AND memory_id IN (SELECT memory_id FROM gone)
"""
_DELETE = "DELETE FROM memories_cluster WHERE tenant_id = %(tenant)s AND id = ANY(%(ids)s::uuid[])"
# A name that somebody has given in the meantime stays.
_KEEP = """
INSERT INTO memories_cluster AS old (tenant_id, agent_id, id, name, centroid, keywords, emotional_valence,
    emotional_intensity, importance, size, stale, activations, created_at, updated_at)
SELECT %(tenant)s, %(agent)s, new.id, new.name, new.centroid, new.keywords, new.valence, new.intensity,
    new.importance, new.size, false, 0, now(), now()
FROM jsonb_to_recordset(%(rows)s::jsonb) AS new (id uuid, name text, centroid halfvec, keywords jsonb,
    valence float8, intensity float8, importance float8, size int)
ORDER BY new.id
ON CONFLICT (tenant_id, id) DO UPDATE SET centroid = EXCLUDED.centroid, keywords = EXCLUDED.keywords,
    name = CASE WHEN old.name = %(named)s::jsonb ->> old.id::text THEN EXCLUDED.name ELSE old.name END,
    emotional_valence = EXCLUDED.emotional_valence, emotional_intensity = EXCLUDED.emotional_intensity,
    importance = EXCLUDED.importance, size = EXCLUDED.size, stale = false, updated_at = now()
"""
_LEAVE = """
DELETE FROM memories_clustermember m USING unnest(%(clusters)s::uuid[], %(memories)s::uuid[]) AS gone (cluster, memory)
WHERE m.tenant_id = %(tenant)s AND m.cluster_id = gone.cluster AND m.memory_id = gone.memory
"""
_BELONG = """
INSERT INTO memories_clustermember (tenant_id, cluster_id, memory_id, strength, added_at)
SELECT %(tenant)s, new.cluster, m.id, new.strength, now()
FROM unnest(%(clusters)s::uuid[], %(memories)s::uuid[], %(strengths)s::float8[]) AS new (cluster, memory, strength)
JOIN memories_memory m ON m.tenant_id = %(tenant)s AND m.id = new.memory AND m.status = 'active'
ORDER BY new.cluster, m.id
ON CONFLICT (tenant_id, cluster_id, memory_id) DO UPDATE SET strength = EXCLUDED.strength
"""
_END = """
UPDATE memories_upkeep SET unclustered = false
WHERE tenant_id = %(tenant)s AND agent_id = %(agent)s AND unclustered AND memory_id = ANY(%(ids)s::uuid[])
"""
# Somebody joined or left while this was computed: counted as it is, and put in order the next time.
_RECOUNT = """
UPDATE memories_cluster c SET size = now.size, stale = true
FROM (
    SELECT c.id, count(m.memory_id) AS size FROM memories_cluster c
    LEFT JOIN memories_clustermember m ON m.tenant_id = c.tenant_id AND m.cluster_id = c.id
    WHERE c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s GROUP BY c.id
) now WHERE c.tenant_id = %(tenant)s AND c.id = now.id AND c.size <> now.size
"""
_UNLINK = """
DELETE FROM memories_clusterrelation r USING memories_cluster c
WHERE r.tenant_id = %(tenant)s AND c.tenant_id = %(tenant)s AND c.agent_id = %(agent)s AND r.source_id = c.id
"""
_LINK = """
INSERT INTO memories_clusterrelation (tenant_id, source_id, target_id, relation, strength, computed_at)
SELECT %(tenant)s, *, now()
FROM unnest(%(sources)s::uuid[], %(targets)s::uuid[], %(relations)s::text[], %(strengths)s::float8[])
"""


def plan_order(order: Order, *, deviations: float) -> Plan:
    """Compute the themes and how they bear on one another. Seconds for 10,000 memories; nothing is read or written."""
    standing = [
        Theme(id=cluster_id, centroid=None, members=known.members, named=known.named)
        for cluster_id, known in order.standing.items()
    ]
    found = arrange(order.ids, order.vectors, standing, deviations=deviations)
    themes = {theme.id or uuid7(): theme for theme in found}
    placed = []
    for cluster_id, theme in themes.items():
        began, ended = middle_half([order.traits[member][2] for member in theme.members])
        assert theme.centroid is not None
        placed.append(
            Placed(
                id=cluster_id,
                centroid=theme.centroid,
                members=frozenset(theme.members),
                began=began,
                ended=ended,
            )
        )
    near = cosines_among(order.vectors).at(deviations)
    return Plan(order, themes, relate(placed, order.ties, near=near))


class Plan:
    """What is to be written, once the words of the themes that changed have been read."""

    def __init__(self, order: Order, themes: Mapping[UUID, Theme], links: Sequence[Link]) -> None:
        self._order = order
        self._themes = themes
        self._links = links
        self._keywords = {
            cluster: order.standing[cluster].keywords for cluster in themes if not self._has_changed(cluster)
        }
        self._texts: dict[UUID, str] = {}
        self._frequencies: dict[int, int] = {}

    def read_words(self) -> None:
        """Read what members of changed themes say, and how often its words occur. Two statements, or none."""
        ids = {memory_id for cluster_id in self._changed() for memory_id in self._spokesmen(cluster_id)}
        if ids:
            self._texts = dict(fetch(_TEXTS, ids=sorted(ids), characters=READ_CHARACTERS))
            terms = terms_in(list(self._texts.values()))
            self._frequencies = dict(
                fetch(_FREQUENCIES, agent=self._order.agent_id, terms=[ALL_MEMORIES, *sorted(terms)])
            )

    def describe(self) -> None:
        """Find the keywords of the themes that changed."""
        documents = self._frequencies.get(ALL_MEMORIES, 0)
        for cluster_id in self._changed():
            texts = [self._texts[said] for said in self._spokesmen(cluster_id) if said in self._texts]
            self._keywords[cluster_id] = keywords(texts, self._frequencies, documents)

    def write(self) -> bool:
        """Write it in the open transaction, the mind locked; tell whether it was still up to date. Ten statements."""
        order = self._order
        agent, model = order.agent_id, order.model
        if not change(
            _TAKE, agent=agent, before=order.clustered_at, model=model.name, dimension=model.dimension
        ):
            return False
        if gone := sorted(set(order.standing) - set(self._themes)):
            change(_DISSOLVE, ids=gone)
            change(_DELETE, ids=gone)
        if self._themes:
            seen = {
                str(cluster_id): standing.name
                for cluster_id, standing in order.standing.items()
                if not standing.named
            }
            change(_KEEP, agent=agent, rows=json.dumps(self._rows()), named=json.dumps(seen))
        self._write_members()
        change(_END, agent=agent, ids=list(order.ids))
        change(_RECOUNT, agent=agent)
        change(_UNLINK, agent=agent)
        change(
            _LINK,
            sources=[link.source for link in self._links],
            targets=[link.target for link in self._links],
            relations=[link.link.value for link in self._links],
            strengths=[link.strength for link in self._links],
        )
        return True

    def _write_members(self) -> None:
        left: list[tuple[UUID, UUID]] = []
        belong: list[tuple[UUID, UUID, float]] = []
        for cluster_id, theme in self._themes.items():
            before = self._order.standing[cluster_id].members if cluster_id in self._order.standing else {}
            left += [(cluster_id, memory_id) for memory_id in before if memory_id not in theme.members]
            belong += [
                (cluster_id, memory_id, strength)
                for memory_id, strength in theme.members.items()
                if abs(before.get(memory_id, -1.0) - strength) > _CHANGED_BY
            ]
        if left:
            change(_LEAVE, clusters=[row[0] for row in left], memories=[row[1] for row in left])
        if belong:
            change(
                _BELONG,
                clusters=[row[0] for row in belong],
                memories=[row[1] for row in belong],
                strengths=[row[2] for row in belong],
            )

    def _rows(self) -> list[dict[str, Any]]:
        centres = halfvec_texts(np.array([theme.centroid for theme in self._themes.values()]))
        rows = []
        for (cluster_id, theme), centroid in zip(self._themes.items(), centres, strict=True):
            feeling = feeling_of(
                [
                    Felt(
                        strength=strength,
                        importance=self._order.traits[memory_id][0],
                        valence=self._order.traits[memory_id][1],
                    )
                    for memory_id, strength in theme.members.items()
                ]
            )
            rows.append(
                {
                    "id": str(cluster_id),
                    "name": name_of(self._keywords[cluster_id]),
                    "centroid": centroid,
                    "keywords": self._keywords[cluster_id],
                    "valence": feeling.valence,
                    "intensity": feeling.intensity,
                    "importance": feeling.importance,
                    "size": len(theme.members),
                }
            )
        return rows

    def _changed(self) -> list[UUID]:
        return [cluster_id for cluster_id in self._themes if self._has_changed(cluster_id)]

    def _has_changed(self, cluster_id: UUID) -> bool:
        before = self._order.standing.get(cluster_id)
        return (
            before is None or before.stale or before.members.keys() != self._themes[cluster_id].members.keys()
        )

    def _spokesmen(self, cluster_id: UUID) -> list[UUID]:
        members = self._themes[cluster_id].members
        return sorted(members, key=lambda memory_id: (-members[memory_id], memory_id))[:READ_MEMBERS]
