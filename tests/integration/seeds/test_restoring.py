"""Restore agents from seeds: what a seed has comes back, and nothing else changes."""

from __future__ import annotations

import io
from uuid import UUID

import pytest

from apps.agents.models import Agent, Percept
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.fleet.seeds.files import verify_seed
from apps.fleet.seeds.restoring import RestoreOptions, SeedReport, restore_seed
from apps.fleet.seeds.sections import SECTIONS, SeedGroup
from apps.goals.models import Goal, Plan
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.memories.models import BufferItem, Cluster, Memory, NextEmbedding
from apps.memories.services.retention.buffer import add_buffer_items
from apps.selves.models import Belief, Preference, SelfChange
from apps.selves.services.aspects import add_aspect
from apps.selves.services.beliefs import add_belief
from apps.selves.services.history import latest_version, load_history, load_self
from apps.selves.services.rollback import roll_back
from apps.tenants.scope import tenant_transaction
from arbor.errors import SeedInvalid, TransitionIllegal
from arbor.goals.plans import PlanStatus
from arbor.memory.buffer import NewBufferItem
from arbor.selves.history import fold
from arbor.selves.values import AspectKind, BeliefCategory, NewAspect, NewBelief
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory, PlanFactory
from tests.factories.heartbeats import PerceptFactory
from tests.factories.memories import ClusterFactory, MemoryFactory, NextEmbeddingFactory
from tests.integration.seeds.conftest import Export
from tests.support.console import World


def restore(
    world: World, file: io.BytesIO, *skip: SeedGroup, dry_run: bool = False, agent_id: UUID | None = None
) -> SeedReport:
    return restore_seed(
        tenant_id=world.tenant.id,
        agent_id=agent_id or world.agent.id,
        seed=verify_seed(file),
        options=RestoreOptions(skip=frozenset(skip), dry_run=dry_run),
        actor="cli:ann",
    )


def damage(world: World) -> None:
    """Change the agent in every group."""
    with tenant_transaction(world.tenant.id):
        Memory.objects.filter(agent=world.agent).delete()
        MemoryFactory(agent=world.agent, content="Something else happened.")
        Goal.objects.filter(agent=world.agent).update(title="Another goal")
        GoalFactory(agent=world.agent)
        Belief.objects.filter(agent=world.agent).delete()
        Preference.objects.filter(agent=world.agent).update(value="another")
        Agent.objects.filter(id=world.agent.id).update(name="Renamed", character={"name": "Else"})
        world.agent.state.delete()
        world.agent.policy.delete()


def digest(file: io.BytesIO) -> str:
    return verify_seed(file).manifest.trailer.digest


def test_a_seed_has_rows_in_every_section(world: World, export: Export) -> None:
    rows = verify_seed(export(world.agent.id)).manifest.rows

    assert {section.name for section in SECTIONS if not rows[section.name]} == set()
    assert rows["profile"] == 1
    assert rows["requests"] >= 5


def test_capture_restore_and_capture_have_one_digest(world: World, export: Export) -> None:
    file = export(world.agent.id)
    damage(world)
    assert digest(export(world.agent.id)) != digest(file)

    report = restore(world, file)

    assert digest(export(world.agent.id)) == digest(file) == report.digest
    assert (report.dropped, report.unknown) == ({}, {})


def test_a_restore_saves_a_seed_of_the_state_before(world: World, export: Export) -> None:
    file = export(world.agent.id)
    damage(world)
    before = digest(export(world.agent.id))

    report = restore(world, file)

    with tenant_transaction(world.tenant.id):
        saved = SavedSeed.objects.get(actor="cli:ann")
    assert (saved.id, saved.digest, saved.reason) == (report.saved_seed_id, before, "restore")


def test_a_restored_self_is_in_the_self_history(world: World, export: Export) -> None:
    file = export(world.agent.id)
    damage(world)

    restore(world, file)

    with tenant_transaction(world.tenant.id):
        changes = SelfChange.objects.filter(agent=world.agent, reason__startswith="restored the seed")
        assert sorted(changes.values_list("what", flat=True)) == ["belief", "belief", "preference"]


@pytest.mark.parametrize("group", SeedGroup)
def test_a_skipped_group_stays_as_it_is(world: World, export: Export, group: SeedGroup) -> None:
    file = export(world.agent.id)
    damage(world)
    sections = {section.name for section in SECTIONS if section.group is group} | (
        {"profile"} if group is SeedGroup.PROFILE else set()
    )
    damaged = section_digests(export(world.agent.id))

    restore(world, file, group)

    after, wanted = section_digests(export(world.agent.id)), section_digests(file)
    changed = {name for name in wanted if after[name] != wanted[name]} - {"self_history", "upkeep"}
    # Links between memories and a skipped group are deleted with either end.
    links = {"goal_memories", "evidence"}
    assert changed - links <= sections
    assert all(after[name] == damaged[name] for name in sections - links)


def section_digests(file: io.BytesIO) -> dict[str, str]:
    return {section.name: section.digest for section in verify_seed(file).manifest.trailer.sections}


def test_a_dry_run_changes_nothing(world: World, export: Export) -> None:
    file = export(world.agent.id)
    damage(world)
    before = digest(export(world.agent.id))

    report = restore(world, file, dry_run=True)

    rows = verify_seed(file).manifest.rows
    assert report.rows == {section.name: rows[section.name] for section in SECTIONS}
    assert digest(export(world.agent.id)) == before
    with tenant_transaction(world.tenant.id):
        assert not SavedSeed.objects.filter(actor="cli:ann").exists()
        assert not AuditEvent.objects.filter(action=AuditAction.SEED_RESTORED).exists()


def test_a_seed_of_another_agent_is_refused(world: World, export: Export) -> None:
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        other = AgentFactory()

    with pytest.raises(SeedInvalid, match="import it as a new agent"):
        restore(world, file, agent_id=other.id)

    with tenant_transaction(world.tenant.id):
        refused = AuditEvent.objects.get(action=AuditAction.SEED_REFUSED)
    assert refused.agent_id == other.id


def test_a_restore_during_a_heartbeat_is_refused(world: World, export: Export) -> None:
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        Heartbeat.objects.filter(id=world.heartbeat.id).update(status=HeartbeatStatus.WAITING)

    with pytest.raises(TransitionIllegal, match="under way"):
        restore(world, file)


def test_a_message_that_came_since_the_capture_stays(world: World, export: Export) -> None:
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        consumed = Percept.objects.filter(agent=world.agent, heartbeat=None, sealed__isnull=True)
        assert consumed.update(heartbeat=world.heartbeat.id)
        waiting = PerceptFactory(agent=world.agent, content="Are you there?")

    restore(world, file)

    with tenant_transaction(world.tenant.id):
        pending = Percept.objects.filter(agent=world.agent, heartbeat=None, sealed__isnull=True)
        assert list(pending.values_list("id", flat=True)) == [waiting.id]


def test_a_restore_reactivates_the_earlier_plan_of_a_goal(world: World, export: Export) -> None:
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent)
        first = PlanFactory(goal=goal, agent=world.agent, status=PlanStatus.ACTIVE)
        second = PlanFactory(goal=goal, agent=world.agent, status=PlanStatus.DRAFT)
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        Plan.objects.filter(id=first.id).update(status=PlanStatus.ABANDONED)
        Plan.objects.filter(id=second.id).update(status=PlanStatus.ACTIVE)

    restore(world, file)

    with tenant_transaction(world.tenant.id):
        assert Plan.objects.get(goal=goal, status=PlanStatus.ACTIVE).id == first.id


def test_a_file_that_is_replaced_after_its_check_changes_nothing(world: World, export: Export) -> None:
    file = export(world.agent.id)
    seed = verify_seed(file)
    with tenant_transaction(world.tenant.id):
        MemoryFactory(agent=world.agent, content="Something else happened.")
    other = export(world.agent.id).getvalue()
    before = digest(io.BytesIO(other))
    file.seek(0)
    file.write(other)
    file.truncate()

    with pytest.raises(SeedInvalid, match="replaced while it was read"):
        restore_seed(
            tenant_id=world.tenant.id,
            agent_id=world.agent.id,
            seed=seed,
            options=RestoreOptions(),
            actor="cli:ann",
        )

    assert digest(export(world.agent.id)) == before


def test_a_rollback_crosses_a_restore(world: World, export: Export) -> None:
    with tenant_transaction(world.tenant.id):
        agent_id = AgentFactory().id

    def learn() -> int:
        with tenant_transaction(world.tenant.id):
            trait = NewAspect(content="stubborn", kind=AspectKind.TRAIT)
            add_aspect(agent_id=agent_id, aspect=trait, actor="cli:ann")
            belief = NewBelief(statement="Fog never lifts.", category=BeliefCategory.WORLD, source="operator")
            add_belief(agent_id=agent_id, belief=belief, actor="cli:ann")
            return latest_version(agent_id)

    file = export(agent_id)
    learnt = learn()
    restore(world, file, SeedGroup.PROFILE, agent_id=agent_id)
    learn()

    with tenant_transaction(world.tenant.id):
        before = fold(load_history(agent_id, until=learnt))
        roll_back(agent_id=agent_id, to=learnt, actor="cli:ann")
        assert load_self(agent_id) == before


def test_restored_buffer_items_are_found_by_their_speakers(world: World, export: Export) -> None:
    item = NewBufferItem(content="Pay Ann first.", role="Marta")
    with tenant_transaction(world.tenant.id):
        (item_id,) = add_buffer_items(agent_id=world.agent.id, items=[item])
        before = BufferItem.objects.get(id=item_id).lexical
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        BufferItem.objects.filter(agent=world.agent).delete()

    restore(world, file)

    with tenant_transaction(world.tenant.id):
        assert BufferItem.objects.get(id=item_id).lexical == before


def test_clusters_of_a_seed_without_vectors_are_computed_again(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        ClusterFactory(agent=world.agent, stale=False)
    file = io.BytesIO()
    options = CaptureOptions(reason="test", with_vectors=False)
    export_seed(
        tenant_id=world.tenant.id, agent_id=world.agent.id, output=file, options=options, actor="cli:ann"
    )

    restore(world, file)

    with tenant_transaction(world.tenant.id):
        clusters = Cluster.objects.filter(agent=world.agent, centroid=None)
        assert set(clusters.values_list("stale", flat=True)) == {True}


def test_a_restore_ends_a_move_to_another_embedder(world: World, export: Export) -> None:
    with tenant_transaction(world.tenant.id):
        NextEmbeddingFactory(memory=MemoryFactory(agent=world.agent))

    restore(world, export(world.agent.id))

    with tenant_transaction(world.tenant.id):
        assert not NextEmbedding.objects.filter(agent=world.agent).exists()
