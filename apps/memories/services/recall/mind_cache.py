"""The mind cache: images of recently recalled minds in this process, brought up to date in each transaction.

An image is shared by all transactions of the process, so only committed rows enter it; a transaction that has itself written
memories of the mind gets an image of its own.
"""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from uuid import UUID

import structlog
from django.conf import settings

from apps.memories.services.recall.mind_reading import MindReading, read_changes, read_minds
from apps.memories.services.store.term_counts import TermStatistics
from apps.tenants.scope import current_tenant
from arbor.embedding.models import EmbeddingModel
from arbor.memory.mind.image import MindImage
from arbor.memory.mind.rows import Snapshot

log = structlog.get_logger(__name__)

type _Key = tuple[UUID, UUID]

#: A mind of n memories is loaded at recall 1 + n // MEMORIES_PER_RECALL: by then, its scans have cost more than recalls from an image
#: would have, by about the cost of the load (docs/decisions/0014-mind-cache.md).
MEMORIES_PER_RECALL = 1_000
#: The seconds within which recalls of a mind are counted together.
_COUNTING_S = 600.0
#: The most memories that one statement loads, unless they are of one mind; other minds wait for the next recall.
_MAX_LOADED = 10_000
#: The most minds whose recalls are counted.
_MAX_COUNTED = 10_000
#: Bytes of a memory besides its vector: columns, words and lookups.
_BYTES_BESIDE_VECTOR = 400
_MIB = 1024 * 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class CachedMind:
    """An image that agrees with the open transaction, with the model of its vectors."""

    image: MindImage
    model: EmbeddingModel
    #: The statistics of the requested terms.
    statistics: TermStatistics


@dataclass(frozen=True, slots=True, kw_only=True)
class _Entry:
    image: MindImage
    model: EmbeddingModel
    #: The snapshot that read the image's memories.
    snapshot: Snapshot
    nbytes: int


@dataclass(slots=True, kw_only=True)
class _Recalls:
    since: float
    count: int


class MindCache:
    """The images of one process, by tenant and agent. The least recently used are evicted when all exceed the budget of bytes."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: OrderedDict[_Key, _Entry] = OrderedDict()
        self._recalls: OrderedDict[_Key, _Recalls] = OrderedDict()
        self._nbytes = 0

    def __len__(self) -> int:
        return len(self._entries)

    @property
    def nbytes(self) -> int:
        """The approximate number of bytes of all images."""
        return self._nbytes

    def bring_up_to_date(self, terms: Mapping[UUID, Collection[int] | None]) -> dict[UUID, CachedMind]:
        """Return the cached minds of these agents, as the open transaction sees them. One statement.

        The statement also reads the statistics of the terms that `terms` has for an agent.
        """
        if not settings.ARBOR_MIND_CACHE_MB:
            return {}
        tenant_id = current_tenant()
        entries = self._cached_minds(tenant_id, terms)
        readings = read_changes({agent_id: entry.snapshot for agent_id, entry in entries.items()}, terms)
        found = {}
        for reading in readings:
            current = self._current(tenant_id, entries[reading.agent_id], reading)
            if current is not None:
                found[reading.agent_id] = current
        for agent_id in entries.keys() - {reading.agent_id for reading in readings}:
            # This transaction finds no mind of the agent: the tenant is suspended, or the agent was deleted.
            self._drop((tenant_id, agent_id))
        return found

    def load(self, documents: Mapping[UUID, int]) -> dict[UUID, CachedMind]:
        """Load uncached minds that are worth caching, and return them by agent. At most one statement.

        `documents` has the approximate number of memories of each agent whose mind is not cached. A mind that the result lacks
        has to be scanned.
        """
        if not settings.ARBOR_MIND_CACHE_MB:
            return {}
        tenant_id = current_tenant()
        found: dict[UUID, CachedMind] = {}
        for reading in read_minds(self._worth_loading(tenant_id, documents)):
            if reading.wrote_memories or reading.revision == reading.own:
                continue
            try:
                image = MindImage.of(reading.rows, dimension=reading.model.dimension)
            except ValueError as error:
                log.warning("mind_load_failed", agent_id=str(reading.agent_id), error=str(error))
                continue
            self._put((tenant_id, reading.agent_id), image, reading)
            found[reading.agent_id] = CachedMind(
                image=image, model=reading.model, statistics=reading.statistics
            )
        return found

    def term_statistics(
        self, tenant_id: UUID, agent_id: UUID, terms: Collection[int]
    ) -> TermStatistics | None:
        """Return the statistics of terms as of the mind's last recall; None for a mind that is not cached."""
        with self._lock:
            entry = self._entries.get((tenant_id, agent_id))
        if entry is None or not settings.ARBOR_MIND_CACHE_MB:
            return None
        return TermStatistics(
            df=entry.image.document_counts(terms), documents=len(entry.image), model=entry.model
        )

    def clear(self) -> None:
        """Drop all images and the counts of recalls."""
        with self._lock:
            self._entries.clear()
            self._recalls.clear()
            self._nbytes = 0

    def _cached_minds(self, tenant_id: UUID, agent_ids: Iterable[UUID]) -> dict[UUID, _Entry]:
        with self._lock:
            entries = {}
            for agent_id in agent_ids:
                entry = self._entries.get((tenant_id, agent_id))
                if entry is not None:
                    self._entries.move_to_end((tenant_id, agent_id))
                    entries[agent_id] = entry
            return entries

    def _current(self, tenant_id: UUID, entry: _Entry, reading: MindReading) -> CachedMind | None:
        """Return the mind with its changes; None if the image cannot be used, by this transaction or by any."""
        key = (tenant_id, reading.agent_id)
        if reading.own is not None and reading.revision == reading.own:
            # This transaction deleted or moved the mind, and may still be rolled back: others continue with the image.
            return None
        if not entry.snapshot.includes(reading.revision) or reading.snapshot.until < entry.snapshot.until:
            self._drop(key)
            return None
        try:
            image = entry.image.with_changes(reading.rows)
        except ValueError as error:
            log.warning("mind_load_failed", agent_id=str(reading.agent_id), error=str(error))
            self._drop(key)
            return None
        if not reading.wrote_memories:
            self._put(key, image, reading)
        return CachedMind(image=image, model=entry.model, statistics=reading.statistics)

    def _worth_loading(self, tenant_id: UUID, documents: Mapping[UUID, int]) -> list[UUID]:
        """Count the recalls of minds that are not cached; return the minds to load."""
        fitting = _budget() // (4 * settings.ARBOR_EMBEDDING_DIMENSION + _BYTES_BESIDE_VECTOR)
        wanted: list[UUID] = []
        left = _MAX_LOADED
        now = time.monotonic()
        with self._lock:
            for agent_id, count in sorted(documents.items(), key=lambda item: item[1]):
                due = self._count((tenant_id, agent_id), now) > count // MEMORIES_PER_RECALL
                if due and count <= fitting and (count <= left or not wanted):
                    wanted.append(agent_id)
                    left -= count
        return wanted

    def _count(self, key: _Key, now: float) -> int:
        """Count a recall of a mind; return the number of its recalls that are counted together, within _COUNTING_S."""
        recalls = self._recalls.pop(key, None)
        if recalls is None or now - recalls.since > _COUNTING_S:
            recalls = _Recalls(since=now, count=0)
        recalls.count += 1
        self._recalls[key] = recalls
        if len(self._recalls) > _MAX_COUNTED:
            self._recalls.popitem(last=False)
        return recalls.count

    def _put(self, key: _Key, image: MindImage, reading: MindReading) -> None:
        """Cache an image with exactly the memories that the reading's snapshot includes."""
        with self._lock:
            before = self._entries.pop(key, None)
            nbytes = before.nbytes if before is not None and before.image is image else image.nbytes
            self._entries[key] = _Entry(
                image=image, model=reading.model, snapshot=reading.snapshot, nbytes=nbytes
            )
            self._nbytes += nbytes - (before.nbytes if before is not None else 0)
            while self._nbytes > _budget() and self._entries:
                self._nbytes -= self._entries.popitem(last=False)[1].nbytes

    def _drop(self, key: _Key) -> None:
        with self._lock:
            entry = self._entries.pop(key, None)
            if entry is not None:
                self._nbytes -= entry.nbytes


def _budget() -> int:
    return int(settings.ARBOR_MIND_CACHE_MB * _MIB)


#: The cached minds of this process.
MINDS = MindCache()
