"""A state machine over the mind of a whole agent while time passes: pins, expiries, jobs, seeds, copies and named clusters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from types import MappingProxyType
from uuid import UUID

from django.test import override_settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule

from apps.agents.models import Agent
from apps.fleet.lifecycle import destroy_agent
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.importing import fork_agent
from apps.fleet.seeds.merging import MergeOptions, merge_seed
from apps.fleet.seeds.restoring import RestoreOptions, restore_seed
from apps.fleet.seeds.saving import save_seed, sweep_saved_seeds, verified_saved_seed
from apps.memories.models import BufferItem, Cluster, Memory, Mind, Pin
from apps.memories.services.clusters.clusters import name_cluster
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.recall.activation import trim_activations
from apps.memories.services.retention.archive import flag_for_reindexing
from apps.memories.services.retention.buffer import add_buffer_items, promote_buffers
from apps.memories.services.retention.forgetting import (
    clean_up_memories,
    enforce_quotas,
    expire_memories,
    fade_memories,
)
from apps.memories.services.retention.pins import pin, unpin
from apps.memories.services.retention.quotas import read_quotas
from apps.memories.services.store.remember import remember
from apps.tenants.scope import tenant_transaction
from arbor.memory.buffer import NewBufferItem
from arbor.memory.values import MemoryStatus, MemoryType, Retention
from arbor.seeds.saving import SeedReason
from tests.factories.agents import AgentFactory
from tests.integration.memories.conftest import a_memory
from tests.integration.memories.mind_invariants import assert_mind_is_consistent
from tests.integration.memories.mind_machine import ADA, CHARACTER, QUOTA, MindMachine, places, texts
from tests.support.moved_clock import MovedClock

#: Texts of a second agent, none of which the first one has.
OTHER_TEXTS = ("The lamp needs oil.", "The chart of the bay is wrong.")
JOBS: Mapping[str, Callable[[], object]] = MappingProxyType(
    {
        "fade": fade_memories,
        "clean up": clean_up_memories,
        "expire": expire_memories,
        "quota": enforce_quotas,
    }
)


@dataclass(frozen=True, kw_only=True)
class SavedMind:
    """The model of the machine at the time of a saved seed."""

    status: Mapping[UUID, MemoryStatus]
    content: Mapping[UUID, str]
    permanent: frozenset[UUID]
    pins: frozenset[UUID]
    buffered: frozenset[str]


class LifeMachine(MindMachine):
    """The mind of MindMachine, with what else happens to an agent's memories; the clock is moved."""

    clock: MovedClock

    def __init__(self) -> None:
        super().__init__()
        self.saved: dict[UUID, SavedMind] = {}
        self.copies = 0

    @rule(hours=st.sampled_from([1, 30, 8 * 24, 40 * 24, 400 * 24]))
    def pass_time(self, hours: int) -> None:
        self.clock.advance(timedelta(hours=hours))

    # --- Retain for a time, or for good --------------------------------------------------------------------

    @rule(
        contents=st.lists(texts, min_size=1, max_size=2, unique=True),
        days=st.sampled_from([0.5, 5, 50]),
        importance=st.sampled_from([0.01, 0.5, None]),
    )
    def remember_for_a_time(self, contents: list[str], days: float, importance: float | None) -> None:
        until = self.clock.now() + timedelta(days=days)
        memories = [a_memory(content, expires_at=until, importance=importance) for content in contents]
        self._expect_active(
            remember(tenant_id=self.tenant.id, agent_id=self.agent.id, memories=memories).ids, contents
        )

    @rule(content=texts, importance=st.sampled_from([0.1, 0.9]), hours=st.sampled_from([1, 48]))
    def buffer(self, content: str, importance: float, hours: int) -> None:
        item = NewBufferItem(content=content, importance=importance, lasts=timedelta(hours=hours))
        with tenant_transaction(self.tenant.id):
            add_buffer_items(agent_id=self.agent.id, items=[item])
        self.purged.discard(content)

    @rule()
    def promote_important_items(self) -> None:
        promote_buffers()
        self._expect_active(self._newly_active(), [])

    @rule(chosen=places)
    def pin(self, chosen: list[int]) -> None:
        ids = self._chosen(chosen, MemoryStatus.ACTIVE)
        unpinned = set(ids) - self._pins()
        with tenant_transaction(self.tenant.id):
            assert pin(memory_ids=ids, actor=ADA) == len(unpinned)

    @rule(chosen=places)
    def unpin(self, chosen: list[int]) -> None:
        ids = self._chosen(chosen)
        pinned = set(ids) & self._pins()
        with tenant_transaction(self.tenant.id):
            assert unpin(memory_ids=ids, actor=ADA) == len(pinned)

    @rule(job=st.sampled_from(sorted(JOBS)), grace=st.sampled_from([0, 10]))
    def forget(self, job: str, grace: int) -> None:
        with tenant_transaction(self.tenant.id):
            due = {"counted_at": None, "forgot_at": None, "cleaned_at": None}
            Mind.objects.filter(agent_id=self.agent.id).update(**due)
        with override_settings(ARBOR_MEMORY_QUOTA=QUOTA, ARBOR_FORGETTING_GRACE=timedelta(days=grace)):
            JOBS[job]()
        active = {memory_id for memory_id, now in self.status.items() if now is MemoryStatus.ACTIVE}
        forgotten = active & self._ids(MemoryStatus.ARCHIVED)
        assert not forgotten & self._pins()
        if job != "expire":
            assert not forgotten & self.permanent
        self._set_status(forgotten, MemoryStatus.ARCHIVED)

    # --- Maintain --------------------------------------------------------------------------------------------

    @rule(chosen=places)
    def reindex(self, chosen: list[int]) -> None:
        with tenant_transaction(self.tenant.id):
            flag_for_reindexing(self._chosen(chosen))
        reindex_words()
        trim_activations()

    @rule(name=st.sampled_from(["Sea", "Land"]), place=st.integers(0, 5))
    def name_a_cluster(self, name: str, place: int) -> None:
        self.maintain()
        with tenant_transaction(self.tenant.id):
            clusters = Cluster.objects.filter(agent_id=self.agent.id).order_by("id")
            ids = list(clusters.values_list("id", flat=True))
            if ids:
                name_cluster(cluster_id=ids[place % len(ids)], name=name)

    # --- Save, restore, copy and merge ---------------------------------------------------------------------

    @rule()
    def save(self) -> None:
        with tenant_transaction(self.tenant.id):
            row = save_seed(agent_id=self.agent.id, reason=SeedReason.REQUESTED, actor=ADA)
        self.saved[row.id] = self._saved_mind()
        sweep_saved_seeds()

    @rule(place=st.integers(0, 5))
    def restore_saved(self, place: int) -> None:
        with tenant_transaction(self.tenant.id):
            stored = set(SavedSeed.objects.values_list("id", flat=True))
        ids = [seed_id for seed_id in self.saved if seed_id in stored]
        if not ids:
            return
        chosen, before = ids[place % len(ids)], self._saved_mind()
        with verified_saved_seed(tenant_id=self.tenant.id, seed_id=chosen, actor=ADA) as seed:
            report = restore_seed(
                tenant_id=self.tenant.id,
                agent_id=self.agent.id,
                seed=seed,
                options=RestoreOptions(),
                actor=ADA,
            )
        assert not report.dropped
        assert report.saved_seed_id is not None
        self.saved[report.saved_seed_id] = before
        saved = self.saved[chosen]
        self.status, self.content = dict(saved.status), dict(saved.content)
        self.permanent = set(saved.permanent)
        assert self._pins() == saved.pins
        self.purged -= {*self.content.values(), *saved.buffered}

    @rule(with_vectors=st.booleans())
    def fork(self, with_vectors: bool) -> None:
        """Copy the agent, maintain the copy, and destroy it."""
        self.copies += 1
        report = fork_agent(
            tenant_id=self.tenant.id,
            agent_id=self.agent.id,
            name=f"Copy {self.copies}",
            actor=ADA,
            with_vectors=with_vectors,
        )
        assert not report.dropped
        with tenant_transaction(self.tenant.id):
            copy = Agent.objects.get(id=report.agent_id)
            assert self._texts_of(copy) == self._texts_of(self.agent)
        assert_mind_is_consistent(copy)
        original, self.agent = self.agent, copy
        self.maintain()
        self.agent = original
        assert_mind_is_consistent(copy)
        with tenant_transaction(self.tenant.id):
            destroy_agent(agent_id=copy.id, confirm=copy.name, actor=ADA)

    @rule()
    def merge(self) -> None:
        """Merge what another agent knows, and destroy that agent."""
        with tenant_transaction(self.tenant.id):
            other: Agent = AgentFactory.create(character=CHARACTER)
        facts = [a_memory(text, type=MemoryType.SEMANTIC) for text in OTHER_TEXTS]
        remember(tenant_id=self.tenant.id, agent_id=other.id, memories=facts)
        with tenant_transaction(self.tenant.id):
            row = save_seed(agent_id=other.id, reason=SeedReason.REQUESTED, actor=ADA)
        before = self._saved_mind()
        with verified_saved_seed(tenant_id=self.tenant.id, seed_id=row.id, actor=ADA) as seed:
            report = merge_seed(
                tenant_id=self.tenant.id,
                agent_id=self.agent.id,
                seed=seed,
                options=MergeOptions(),
                actor=ADA,
            )
        assert report.saved_seed_id is not None
        self.saved[report.saved_seed_id] = before
        with tenant_transaction(self.tenant.id):
            destroy_agent(agent_id=other.id, confirm=other.name, actor=ADA)
        self._expect_active(self._newly_active(), [])

    # --- Invariants ------------------------------------------------------------------------------------------

    @invariant()
    def pinned_memories_neither_decay_nor_expire(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            pins = set(Pin.objects.filter(agent_id=self.agent.id).values_list("memory_id", flat=True))
            for memory in Memory.objects.filter(agent_id=self.agent.id):
                is_permanent = memory.retention == Retention.PERMANENT
                if memory.id in pins:
                    assert is_permanent
                    assert memory.decay_rate == 0
                    assert memory.expires_at is None
                else:
                    assert memory.decay_rate > 0
                    assert is_permanent == (memory.id in self.permanent)

    @invariant()
    def quotas_count_the_memories(self) -> None:
        if not hasattr(self, "agent"):
            return
        with tenant_transaction(self.tenant.id):
            memories = Memory.objects.filter(agent_id=self.agent.id)
            for usage in read_quotas(agent_id=self.agent.id):
                of_type = memories.filter(type=usage.type)
                assert usage.active == of_type.filter(status=MemoryStatus.ACTIVE).count()
                assert usage.archived == of_type.filter(status=MemoryStatus.ARCHIVED).count()

    # --- The model -----------------------------------------------------------------------------------------

    def _expect_active(self, ids: Sequence[UUID], contents: Sequence[str]) -> None:
        super()._expect_active(ids, contents)
        with tenant_transaction(self.tenant.id):
            until_unpinned = Pin.objects.filter(agent_id=self.agent.id).exclude(retention=Retention.PERMANENT)
            self.permanent -= set(until_unpinned.values_list("memory_id", flat=True))

    def _newly_active(self) -> list[UUID]:
        active = self._ids(MemoryStatus.ACTIVE)
        return sorted(
            memory_id for memory_id in active if self.status.get(memory_id) is not MemoryStatus.ACTIVE
        )

    def _ids(self, status: MemoryStatus) -> set[UUID]:
        with tenant_transaction(self.tenant.id):
            rows = Memory.objects.filter(agent_id=self.agent.id, status=status)
            return set(rows.values_list("id", flat=True))

    def _pins(self) -> set[UUID]:
        with tenant_transaction(self.tenant.id):
            return set(Pin.objects.filter(agent_id=self.agent.id).values_list("memory_id", flat=True))

    def _texts_of(self, agent: Agent) -> list[tuple[str, str, str]]:
        rows = Memory.objects.filter(agent_id=agent.id).order_by("content", "status", "retention")
        return list(rows.values_list("content", "status", "retention"))

    def _saved_mind(self) -> SavedMind:
        with tenant_transaction(self.tenant.id):
            items = BufferItem.objects.filter(agent_id=self.agent.id)
            buffered = frozenset(items.values_list("content", flat=True))
        return SavedMind(
            status=dict(self.status),
            content=dict(self.content),
            permanent=frozenset(self.permanent),
            pins=frozenset(self._pins()),
            buffered=buffered,
        )
