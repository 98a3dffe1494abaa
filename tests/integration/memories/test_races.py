"""Concurrent operations on one mind, in either order."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.maintenance.services.consolidation import extract_by_rule
from apps.memories.models import Edge, Memory
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.graph.neighborhoods import mark_stale, refresh_batch
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.store.remember import remember
from apps.memories.services.store.revision import revise
from apps.memories.services.store.term_counts import lock_minds
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import MemoryStatus, NewMemory
from tests.integration.memories.conftest import a_memory, access_counts
from tests.integration.memories.embedding.moves import LONG, SHORT, current_model, move
from tests.integration.memories.mind_invariants import assert_mind_is_consistent
from tests.support.races import in_tenant, none_if_refused, race
from tests.support.threads import start_blocked

ADA = "user:ada"
TEXTS = ["The anchor of the ship is rusty.", "The cook of the ship is asleep.", "The harbour fee is unpaid."]
#: Races of each pair, for each order of starting: the same side wins most of them.
ROUNDS = 3

type Operation = Callable[[], Any]


class Racers:
    """The operations on one memory, by name."""

    def __init__(self, agent: Agent) -> None:
        self.agent = agent
        self.memory_id, self.other_id, _ = self.store(*TEXTS)

    def store(self, *texts: str) -> tuple[UUID, ...]:
        memories = [a_memory(text) for text in texts]
        stored = remember(tenant_id=self.agent.tenant_id, agent_id=self.agent.id, memories=memories)
        return tuple(stored.ids)

    def archive(self) -> int:
        return self._act(archive)

    def restore(self) -> int:
        return self._act(restore)

    def purge(self) -> int:
        return self._act(purge)

    def recall(self) -> int:
        recalled = recall(
            tenant_id=self.agent.tenant_id,
            request=RecallRequest(agent_id=self.agent.id, text=TEXTS[0]),
            counts=True,
        )
        return len(recalled)

    def remember_again(self) -> tuple[UUID, ...]:
        """Store the same text once more: it is merged with the memory, which is restored if it was archived."""
        return self.store(TEXTS[0])

    def remember_more(self) -> tuple[UUID, ...]:
        return self.store(*(f"Buoy {number} is green." for number in range(5)))

    @property
    def ends(self) -> tuple[GraphNode, GraphNode]:
        """The two memories as nodes."""
        return GraphNode(GraphNodeKind.MEMORY, self.memory_id), GraphNode(GraphNodeKind.MEMORY, self.other_id)

    def relate(self) -> None:
        source, target = self.ends
        new = NewRelation(source=source, target=target, relation=Relation.ASSOCIATED)
        with tenant_transaction(self.agent.tenant_id):
            relate(agent_id=self.agent.id, new=new)

    def unrelate(self) -> None:
        source, target = self.ends
        with tenant_transaction(self.agent.tenant_id):
            unrelate(agent_id=self.agent.id, source=source, target=target)

    def consolidate(self) -> None:
        """Run maintenance on a mind."""
        extract_by_rule(tenant_id=self.agent.tenant_id, agent_id=self.agent.id)
        refresh_batch(self.agent.tenant_id, self.agent.id)
        recluster_mind(tenant_id=self.agent.tenant_id, agent_id=self.agent.id)

    def reembed(self) -> None:
        move(self.agent, LONG if current_model(self.agent) == SHORT else SHORT)

    def _act(self, act: Callable[..., int]) -> int:
        with tenant_transaction(self.agent.tenant_id):
            return act(memory_ids=[self.memory_id], reason="a test", actor=ADA)


def status_of(agent: Agent, memory_id: UUID) -> str | None:
    """Return the status of a memory, or None after its purge."""
    with tenant_transaction(agent.tenant_id):
        return Memory.objects.filter(id=memory_id).values_list("status", flat=True).first()


def run_both_orders(
    agent: Agent, prepare: Callable[[Racers], Any], first: str, second: str, *refusals: type[Exception]
) -> list[tuple[Racers, Any, Any]]:
    """Race two operations, started in either order; return their results."""
    outcomes = []
    for start in range(2 * ROUNDS):
        racers = Racers(agent)
        prepare(racers)
        operations: list[Operation] = [
            none_if_refused(getattr(racers, name), *refusals) for name in (first, second)
        ]
        results = race(*operations) if start % 2 else race(*reversed(operations))[::-1]
        # A neighborhood computed meanwhile lists archived memories until its next refresh; recall ignores them.
        assert_mind_is_consistent(agent, neighbors_are_active="consolidate" not in (first, second))
        outcomes.append((racers, *results))
        _purge_memory(racers)
    return outcomes


def _purge_memory(racers: Racers) -> None:
    """Purge the memory that the operations raced for, if it is left."""
    if status_of(racers.agent, racers.memory_id) == MemoryStatus.ACTIVE:
        racers.archive()
    if status_of(racers.agent, racers.memory_id) is not None:
        racers.purge()


def test_a_memory_is_archived_while_it_is_recalled(mind: Agent) -> None:
    for racers, archived, recalled in run_both_orders(mind, lambda _: None, "archive", "recall"):
        assert archived == 1
        assert recalled in (2, 3)
        assert set(access_counts(mind)) >= {racers.other_id}


def test_a_memory_is_restored_while_it_is_purged(mind: Agent) -> None:
    outcomes = run_both_orders(mind, Racers.archive, "restore", "purge", Invalid, NotFound)
    # One operation comes too late: an active memory is not purged, and a purged one is not restored.
    assert {(restored, purged) for _, restored, purged in outcomes} <= {(1, None), (None, 1)}


def test_a_text_is_merged_with_a_memory_that_is_purged(mind: Agent) -> None:
    for racers, ids, purged in run_both_orders(mind, Racers.archive, "remember_again", "purge", Invalid):
        # Restored by the merge, or purged and stored anew.
        assert (ids == (racers.memory_id,)) is (purged is None)


def test_a_memory_is_related_while_it_is_purged(mind: Agent) -> None:
    for _, _, purged in run_both_orders(mind, Racers.archive, "relate", "purge", NotFound):
        assert purged == 1


@pytest.mark.parametrize("work", ["consolidate", "reembed"])
def test_memories_are_stored_while_the_mind_is_maintained(mind: Agent, work: str) -> None:
    for operations in ("remember_more", work), (work, "remember_more"):
        racers = Racers(mind)
        race(*(getattr(racers, name) for name in operations))
        assert_mind_is_consistent(mind)
    with tenant_transaction(mind.tenant_id):
        assert Memory.objects.filter(agent_id=mind.id, content__startswith="Buoy").count() == 5
    # Moved to another model and back.
    assert current_model(mind) == LONG


def test_a_memory_is_archived_while_the_mind_is_maintained(mind: Agent) -> None:
    for _, archived, _ in run_both_orders(mind, lambda _: None, "archive", "consolidate"):
        assert archived == 1


def test_a_relation_is_deleted_under_the_lock_of_the_mind(mind: Agent) -> None:
    racers = Racers(mind)
    racers.relate()
    with tenant_transaction(mind.tenant_id):
        lock_minds([mind.id])
        start_blocked(racers.unrelate)
        # The other transaction has not locked these rows before.
        assert mark_stale([racers.memory_id, racers.other_id]) == 2
    with tenant_transaction(mind.tenant_id):
        assert not Edge.objects.exists()


def test_a_memory_archived_meanwhile_is_not_revised(mind: Agent) -> None:
    racers, refused = Racers(mind), []

    def revise_late() -> None:
        with tenant_transaction(mind.tenant_id):
            try:
                revise(
                    agent_id=mind.id,
                    memory_id=racers.memory_id,
                    revised=a_memory("The anchor of the ship is new."),
                    reason="a test",
                    actor="heartbeat:1",
                    vectors=None,
                    model=None,
                )
            except NotFound as error:
                refused.append(error)

    with tenant_transaction(mind.tenant_id):
        archive(memory_ids=[racers.memory_id], reason="private", actor=ADA)
        start_blocked(revise_late)
    assert refused
    with tenant_transaction(mind.tenant_id):
        assert not Memory.objects.filter(content__contains="new").exists()


def test_neighborhoods_are_computed_while_memories_are_archived(mind: Agent) -> None:
    at = datetime.now(UTC)
    texts = [f"The ferry {number} waits at the quay near buoy {number % 7}." for number in range(60)]
    memories = [
        NewMemory(content=text, occurred_at=at - timedelta(hours=place)) for place, text in enumerate(texts)
    ]
    ids = list(remember(tenant_id=mind.tenant_id, agent_id=mind.id, memories=memories).ids)
    halves = [ids[::2], list(reversed(ids[1::2]))]
    compute: list[Operation] = [partial(refresh_batch, mind.tenant_id, mind.id)] * 2
    for _ in range(4):
        for change in (archive, restore):
            changes = [
                in_tenant(mind.tenant_id, change, memory_ids=half, reason="test", actor=ADA)
                for half in halves
            ]
            race(*changes, *compute)
    with tenant_transaction(mind.tenant_id):
        assert Memory.objects.filter(id__in=ids, status="active").count() == len(ids)
