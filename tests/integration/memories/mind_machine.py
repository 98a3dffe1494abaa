"""A state machine over one mind: Hypothesis draws the order of the services' calls, and the model checks each step."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any
from uuid import UUID, uuid4

import psycopg
import pytest
from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from apps.agents.models import Agent
from apps.maintenance.services.consolidation import extract_by_rule
from apps.memories.models import Concept, Memory, Mind
from apps.memories.services.clusters.job import recluster_mind
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.graph.concepts import link_memory_to_concept, merge_concepts
from apps.memories.services.graph.neighborhoods import refresh_batch
from apps.memories.services.graph.relations import NewRelation, relate, unrelate
from apps.memories.services.recall.recaller import recall
from apps.memories.services.retention.archive import archive, purge, restore
from apps.memories.services.retention.buffer import add_buffer_items, promote
from apps.memories.services.retention.forgetting import enforce_quotas
from apps.memories.services.store.remember import remember, store
from apps.memories.services.store.revision import change_importance, halve_trust, revise
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import create_tenant
from arbor.errors import Invalid, PermissionDenied
from arbor.memory.buffer import NewBufferItem
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.relations import GraphNode, GraphNodeKind, Relation
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from tests.factories.agents import AgentFactory
from tests.integration.memories.conftest import a_memory
from tests.integration.memories.embedding.moves import LONG, SHORT, move
from tests.integration.memories.mind_invariants import assert_mind_is_consistent, tables_with

ADA = "user:ada"
QUOTA = 3
CHARACTER = {"name": "Vega", "description": "Watches the sea."}

#: Few texts, so that some repeat, and some with nearly the same wording.
TEXTS = (
    "The anchor of the ship is rusty.",
    "The anchor of the ship is rusty!",
    "The cook of the ship is asleep.",
    "Ada pays the harbour fee in June.",
    "Grace studies the ferns of the island.",
    "The harbour fee is unpaid.",
)
#: Places in the list of memories, taken modulo its length.
places = st.lists(st.integers(0, 7), min_size=1, max_size=3)
texts = st.sampled_from(TEXTS)


class MindMachine(RuleBasedStateMachine):
    """One mind, and beside it the status that each of its memories must have."""

    tenant: Tenant
    superuser: psycopg.Connection[Any]

    @initialize()
    def open_mind(self) -> None:
        # A tenant for each example: all agents of a tenant are searched for purged texts.
        self.tenant = create_tenant(slug=f"example-{uuid4().hex}", name="Example")
        with tenant_transaction(self.tenant.id):
            self.agent: Agent = AgentFactory.create(character=CHARACTER)
        #: In the order of storing.
        self.status: dict[UUID, MemoryStatus] = {}
        self.content: dict[UUID, str] = {}
        self.permanent: set[UUID] = set()
        self.purged: set[str] = set()
        self.remember(contents=list(TEXTS[2:5]), kind=MemoryType.EPISODIC, session="", retention=None)

    # --- Store ---------------------------------------------------------------------------------------------

    @rule(
        contents=st.lists(texts, min_size=1, max_size=3, unique=True),
        kind=st.sampled_from([MemoryType.EPISODIC, MemoryType.SEMANTIC]),
        session=st.sampled_from(["", "talk"]),
        retention=st.sampled_from([None, None, Retention.PERMANENT]),
    )
    def remember(
        self, contents: list[str], kind: MemoryType, session: str, retention: Retention | None
    ) -> None:
        memories = [
            a_memory(content, type=kind, session=session, position=TEXTS.index(content), retention=retention)
            for content in contents
        ]
        self._expect_active(
            remember(tenant_id=self.tenant.id, agent_id=self.agent.id, memories=memories).ids, contents
        )

    @rule(content=texts)
    def buffer_and_promote(self, content: str) -> None:
        with tenant_transaction(self.tenant.id):
            (item_id,) = add_buffer_items(agent_id=self.agent.id, items=[NewBufferItem(content=content)])
        memory_id = promote(tenant_id=self.tenant.id, agent_id=self.agent.id, item_id=item_id, actor=ADA)
        self._expect_active([memory_id], [content])

    @rule(place=st.integers(0, 7), content=texts)
    def revise(self, place: int, content: str) -> None:
        for memory_id in self._chosen([place], MemoryStatus.ACTIVE):
            if content == self.content[memory_id]:
                return
            with tenant_transaction(self.tenant.id):
                new_id = revise(
                    agent_id=self.agent.id,
                    memory_id=memory_id,
                    revised=a_memory(content, type=MemoryType.SEMANTIC),
                    reason="it changed",
                    actor=ADA,
                    vectors=None,
                    model=None,
                )
            self.status[memory_id] = MemoryStatus.ARCHIVED
            self._expect_active([new_id], [content])

    @rule(place=st.integers(0, 7), importance=st.floats(0, 1))
    def change_importance_and_trust(self, place: int, importance: float) -> None:
        for memory_id in self._chosen([place], MemoryStatus.ACTIVE):
            with tenant_transaction(self.tenant.id):
                change_importance(
                    agent_id=self.agent.id, memory_id=memory_id, importance=importance, reason="so", actor=ADA
                )
                halve_trust(agent_id=self.agent.id, memory_id=memory_id, reason="so", actor=ADA)

    # --- Retain --------------------------------------------------------------------------------------------

    @rule(chosen=places)
    def archive(self, chosen: list[int]) -> None:
        ids = self._chosen(chosen)
        active = {memory_id for memory_id in ids if self.status[memory_id] is MemoryStatus.ACTIVE}
        with tenant_transaction(self.tenant.id):
            assert archive(memory_ids=ids, reason="a test", actor=ADA) == len(active)
        self._set_status(ids, MemoryStatus.ARCHIVED)

    @rule(chosen=places, for_good=st.booleans())
    def restore(self, chosen: list[int], for_good: bool) -> None:
        ids = self._chosen(chosen)
        archived = {memory_id for memory_id in ids if self.status[memory_id] is MemoryStatus.ARCHIVED}
        with tenant_transaction(self.tenant.id):
            counted = restore(memory_ids=ids, reason="a test", actor=ADA, for_good=for_good)
        assert counted == len(archived)
        self._set_status(ids, MemoryStatus.ACTIVE)
        self.permanent |= archived if for_good else set()

    @rule(chosen=places)
    def purge(self, chosen: list[int]) -> None:
        ids = self._chosen(chosen, MemoryStatus.ARCHIVED)
        with tenant_transaction(self.tenant.id):
            assert purge(memory_ids=ids, reason="a test", actor=ADA) == len(ids)
        for memory_id in ids:
            del self.status[memory_id]
            self.purged.add(self.content.pop(memory_id))
            self.permanent.discard(memory_id)
        # Another memory may have the same text.
        self.purged -= set(self.content.values())

    @rule(chosen=places)
    def purge_without_right(self, chosen: list[int]) -> None:
        """Try to purge as no person, and to purge active memories: both are refused and change nothing."""
        archived = self._chosen(chosen, MemoryStatus.ARCHIVED)
        active = self._chosen(chosen, MemoryStatus.ACTIVE)
        with pytest.raises(PermissionDenied), tenant_transaction(self.tenant.id):
            purge(memory_ids=archived, reason="a test", actor="system:maintenance")
        if active:
            with pytest.raises(Invalid), tenant_transaction(self.tenant.id):
                purge(memory_ids=[*archived, *active], reason="a test", actor=ADA)

    @rule()
    def enforce_quota(self) -> None:
        with tenant_transaction(self.tenant.id):
            Mind.objects.filter(agent_id=self.agent.id).update(counted_at=None)
        with override_settings(ARBOR_MEMORY_QUOTA=QUOTA):
            enforce_quotas()
        with tenant_transaction(self.tenant.id):
            archived = Memory.objects.filter(agent_id=self.agent.id, status=MemoryStatus.ARCHIVED)
            forgotten = set(archived.values_list("id", flat=True))
        newly = {memory_id for memory_id in forgotten if self.status[memory_id] is MemoryStatus.ACTIVE}
        assert not newly & self.permanent
        self._set_status(newly, MemoryStatus.ARCHIVED)

    # --- Relate --------------------------------------------------------------------------------------------

    @rule(chosen=st.lists(st.integers(0, 7), min_size=2, max_size=2), relation=st.sampled_from(Relation))
    def link(self, chosen: list[int], relation: Relation) -> None:
        ids = self._chosen(chosen)
        if len(ids) == 2:
            source, target = (GraphNode(GraphNodeKind.MEMORY, memory_id) for memory_id in ids)
            with tenant_transaction(self.tenant.id):
                relate(
                    agent_id=self.agent.id,
                    new=NewRelation(source=source, target=target, relation=relation, weight=0.5),
                )

    @rule(chosen=st.lists(st.integers(0, 7), min_size=2, max_size=2))
    def unlink(self, chosen: list[int]) -> None:
        ids = self._chosen(chosen)
        if len(ids) == 2:
            source, target = (GraphNode(GraphNodeKind.MEMORY, memory_id) for memory_id in ids)
            with tenant_transaction(self.tenant.id):
                unrelate(agent_id=self.agent.id, source=source, target=target)

    @rule(chosen=places, name=st.sampled_from(["ship", "harbour", "sea"]))
    def link_to_concept(self, chosen: list[int], name: str) -> None:
        with tenant_transaction(self.tenant.id):
            for memory_id in self._chosen(chosen):
                link_memory_to_concept(agent_id=self.agent.id, memory_id=memory_id, concept_name=name)

    @rule()
    def merge_two_concepts(self) -> None:
        with tenant_transaction(self.tenant.id):
            names = (
                Concept.objects.filter(agent_id=self.agent.id).order_by("key").values_list("name", flat=True)
            )
            if len(names) > 1:
                merge_concepts(agent_id=self.agent.id, retained=names[0], gone=names[1])

    # --- Recall and maintain -------------------------------------------------------------------------------

    @rule(text=texts)
    def recall(self, text: str) -> None:
        recall(
            tenant_id=self.tenant.id, request=RecallRequest(agent_id=self.agent.id, text=text), counts=True
        )

    @rule(model=st.sampled_from([LONG, SHORT]))
    def reembed(self, model: Any) -> None:
        with tenant_transaction(self.tenant.id):
            is_other_model = self.status and model_of(self.agent.id) != model
        if is_other_model:
            move(self.agent, model)

    @rule()
    def maintain(self) -> None:
        while refresh_batch(self.tenant.id, self.agent.id):
            pass
        while extract_by_rule(tenant_id=self.tenant.id, agent_id=self.agent.id):
            pass
        recluster_mind(tenant_id=self.tenant.id, agent_id=self.agent.id)

    @rule(content=texts, chosen=places)
    def roll_back(self, content: str, chosen: list[int]) -> None:
        """Fail a transaction: neither rows nor the cached mind keep its changes."""
        with suppress(ZeroDivisionError), tenant_transaction(self.tenant.id):
            store(agent_id=self.agent.id, memories=[a_memory(content, session="lost")], vectors=None)
            archive(memory_ids=self._chosen(chosen), reason="a test", actor=ADA)
            assert_mind_is_consistent(self.agent)
            raise ZeroDivisionError

    # --- Invariants ------------------------------------------------------------------------------------------

    @invariant()
    def statuses_are_as_expected(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            rows = Memory.objects.filter(agent_id=self.agent.id).values_list("id", "status")
            assert {memory_id: MemoryStatus(status) for memory_id, status in rows} == self.status

    @invariant()
    def mind_is_consistent(self) -> None:
        if hasattr(self, "agent"):
            assert_mind_is_consistent(self.agent)

    @invariant()
    def purged_texts_are_in_no_table(self) -> None:
        for text in getattr(self, "purged", ()):
            assert tables_with(self.superuser, self.tenant.id, text) == set()

    # --- The model -----------------------------------------------------------------------------------------

    def _expect_active(self, ids: Sequence[UUID], contents: Sequence[str]) -> None:
        """Record that these memories are active now: new, known, or restored."""
        with tenant_transaction(self.tenant.id):
            rows = Memory.objects.filter(id__in=ids).values_list("id", "content", "retention")
            for memory_id, content, retention in rows:
                self.content[memory_id] = content
                if retention == Retention.PERMANENT:
                    self.permanent.add(memory_id)
        self._set_status(ids, MemoryStatus.ACTIVE)
        # Remembered again after its purge.
        self.purged -= {*contents, *self.content.values()}

    def _chosen(self, chosen: Sequence[int], status: MemoryStatus | None = None) -> list[UUID]:
        candidates = [memory_id for memory_id, now in self.status.items() if status in (None, now)]
        return (
            list(dict.fromkeys(candidates[place % len(candidates)] for place in chosen)) if candidates else []
        )

    def _set_status(self, ids: Sequence[UUID] | set[UUID], status: MemoryStatus) -> None:
        self.status |= dict.fromkeys(ids, status)
