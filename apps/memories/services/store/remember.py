"""Store memories: idempotent by content. Recall finds a stored memory by its words at once, and by its meaning once it is embedded."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from datetime import UTC, datetime
from uuid import UUID

from apps.memories.services.embedding.embedding import embed_agent_texts
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.store import queries
from apps.memories.services.store.drafts import MemoryKey, MindDraft
from apps.memories.services.store.duplicates import Hits, find_near
from apps.memories.services.store.placement import PlacementStep, StoreRequest, StoreResult
from apps.memories.services.store.rows import write_drafts
from apps.memories.services.store.segmentation import episode_gap
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import tenant_transaction
from apps.tenants.statements import fetch
from arbor.embedding.models import EmbeddingModel
from arbor.embedding.ports import Vectors
from arbor.errors import NotFound
from arbor.memory.values import NewMemory

#: A request with its place among the requests, and the keys of its memories.
type _KeyedRequest = tuple[int, StoreRequest, Sequence[MemoryKey]]


class MemoryWriter:
    """A writer of memories of several agents of a tenant in the open transaction.

    `place` decides for each memory whether it is new or merged into an existing one; it may be called several times, and treats
    memories that earlier calls placed as if they were stored. `write` writes all placed memories.
    """

    def __init__(self) -> None:
        self._drafts: dict[UUID, MindDraft] = {}
        self._locked: set[UUID] = set()

    def lock(self, agent_ids: Collection[UUID]) -> None:
        """Lock the minds of agents, in the order that excludes deadlocks. One statement; none if they are locked already.

        `place` locks minds too; a caller with several calls of `place` locks all its agents first.
        """
        if missing := set(agent_ids) - self._locked:
            lock_minds(missing)
            self._locked |= missing

    def place(self, wanted: Sequence[StoreRequest]) -> list[StoreResult]:
        """Decide for each memory whether it is new or merged, and return the decisions for each request, in order.

        The results are those of `store` for one request after the other. Nothing is written yet, unless an earlier call restored a
        memory that the search for near duplicates must find. At most three other statements for all requests: locks, existing memories
        with the same words, near duplicates; the last is repeated for an agent with two requests.
        Raises NotFound for an agent that does not exist, and Invalid for vectors that do not fit the model.
        """
        results = [StoreResult(ids=(), duplicates=frozenset()) for _ in wanted]
        requests = [
            (place, request, [MemoryKey.of(memory) for memory in request.memories])
            for place, request in enumerate(wanted)
            if request.memories
        ]
        self.lock({request.agent_id for _, request, _ in requests})
        self._read_known(requests)
        for batch in _split_before_repeats(requests):
            for place, result in self._place_step(batch):
                results[place] = result
        return results

    def write(self) -> None:
        """Write all placed memories that are not written yet; the statements are those of `write_drafts`."""
        write_drafts(list(self._drafts.values()))

    def _place_step(self, requests: Sequence[_KeyedRequest]) -> Iterator[tuple[int, StoreResult]]:
        now, gap = datetime.now(UTC), episode_gap()
        steps = [
            (place, PlacementStep(self._drafts[request.agent_id], request, keys, now=now, gap=gap))
            for place, request, keys in requests
        ]
        searches = {place: search for place, step in steps if (search := step.search)}
        if any(self._drafts[search.agent_id].hides_rows for search in searches.values()):
            # The search reads rows, and must find reactivated memories.
            self.write()
        found: dict[int, Hits] = dict(zip(searches, find_near(list(searches.values())), strict=True))
        for place, step in steps:
            yield place, step.decide(found.get(place, {}))

    def _read_known(self, requests: Sequence[_KeyedRequest]) -> None:
        """Read the minds of the agents, and their memories with the same words, unless they were read before."""
        wanted: dict[UUID, set[bytes]] = {}
        for _, request, keys in requests:
            digests = {key.digest for key in keys}
            draft = self._drafts.get(request.agent_id)
            unread = digests if draft is None else draft.unread(digests)
            if draft is None or unread:
                wanted.setdefault(request.agent_id, set()).update(unread)
        if not wanted:
            return
        agents = sorted(wanted)
        rows = fetch(
            queries.KNOWN_MEMORIES,
            agents=agents,
            digests=list({digest for digests in wanted.values() for digest in digests}),
        )
        for agent_id, name, dimension, digest, *_ in rows:
            if digest is None and agent_id not in self._drafts:
                self._drafts[agent_id] = _draft(agent_id, name, dimension)
        for agent_id in agents:
            if agent_id not in self._drafts:
                raise NotFound(f"there is no agent {agent_id} in this tenant")
            self._drafts[agent_id].mark_read(wanted[agent_id])
        for agent_id, _, _, digest, session, position, *row in rows:
            if digest is not None and bytes(digest) in wanted[agent_id]:
                self._drafts[agent_id].add_row(bytes(digest), session, position, row)


def _draft(agent_id: UUID, name: str | None, dimension: int) -> MindDraft:
    model = installation_model() if name is None else EmbeddingModel(name=name, dimension=dimension)
    return MindDraft(agent_id, model, exists=name is not None)


def _split_before_repeats(requests: Sequence[_KeyedRequest]) -> Iterator[list[_KeyedRequest]]:
    """Yield the requests in batches with each agent at most once, so that an agent's second request is compared with its first."""
    batch: list[_KeyedRequest] = []
    agent_ids: set[UUID] = set()
    for request in requests:
        if request[1].agent_id in agent_ids:
            yield batch
            batch, agent_ids = [], set()
        batch.append(request)
        agent_ids.add(request[1].agent_id)
    if batch:
        yield batch


def remember(*, tenant_id: UUID, agent_id: UUID, memories: Sequence[NewMemory]) -> StoreResult:
    """Embed and store memories of one agent, in transactions of its own.

    If the embedder fails, or the settings say not to wait for it, the memories are stored without vectors, and maintenance embeds them
    later.
    """
    if not memories:
        return StoreResult(ids=(), duplicates=frozenset())
    texts = [memory.content for memory in memories]
    embedded = embed_agent_texts(tenant_id=tenant_id, agent_id=agent_id, texts=texts)
    with tenant_transaction(tenant_id):
        return store(agent_id=agent_id, memories=memories, vectors=embedded.vectors, model=embedded.model)


def store(
    *,
    agent_id: UUID,
    memories: Sequence[NewMemory],
    vectors: Vectors | None,
    model: EmbeddingModel | None = None,
) -> StoreResult:
    """Store memories of one agent in the open transaction; `vectors` are one for each memory in order, or None.

    The same content at the same position of the same session is one memory; if it was archived or had expired, it is restored, and
    the later of the two expiries applies. Memories without a session that have the same type and the same words are one memory at any
    position, which is reinforced; events only if they happened at about the same time. Memories whose details disagree are two, and the
    later one, unless it is an event, has evolved from the other. Memories without an importance or a retention are appraised. `model`
    made the vectors; vectors of another model than the agent's are not stored.

    Four statements for any number of new memories; one more with vectors of memories without a session (four for many), one more with
    episodic memories, up to six for reinforced memories, and two for evolved ones. Raises Invalid for vectors that do not fit the
    memories or the model, and NotFound for the agent.
    """
    writer = MemoryWriter()
    (result,) = writer.place(
        [StoreRequest(agent_id=agent_id, memories=memories, vectors=vectors, model=model)]
    )
    writer.write()
    return result
