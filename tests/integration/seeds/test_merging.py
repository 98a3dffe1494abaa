"""Merge what one agent learned into another."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from io import BytesIO

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.files import verify_seed
from apps.fleet.seeds.merging import MergeOptions, MergeReport, merge_seed
from apps.memories.models import Memory
from apps.memories.services.retention.pins import pin
from apps.selves.models import IdentityAspect, Proposal
from apps.tenants.scope import tenant_transaction
from arbor.memory.values import MemoryType
from tests.factories.agents import AgentFactory
from tests.factories.memories import MemoryFactory
from tests.factories.selves import PreferenceFactory
from tests.integration.seeds.conftest import Export
from tests.support.console import World


def merge(file: BytesIO, receiver: Agent, *, dry_run: bool = False) -> MergeReport:
    """Merge the seed of a file into an agent."""
    seed, options = verify_seed(file), MergeOptions(dry_run=dry_run)
    return merge_seed(
        tenant_id=receiver.tenant_id, agent_id=receiver.id, seed=seed, options=options, actor="cli:ann"
    )


def test_knowledge_becomes_memories_and_beliefs_proposals(world: World, export: Export) -> None:
    with tenant_transaction(world.tenant.id):
        MemoryFactory(agent=world.agent, type=MemoryType.SEMANTIC, content="Ice bears a cart.", session="")
        receiver = AgentFactory(name="Receiver")
        PreferenceFactory(agent=receiver, key="the river", value="another")
    file = export(world.agent.id)
    planned = merge(file, receiver, dry_run=True)
    with tenant_transaction(world.tenant.id):
        assert not Memory.objects.filter(agent=receiver).exists()

    report = merge(file, receiver)

    assert (report.memories, report.proposals) == (planned.memories, planned.proposals)
    assert [conflict.subject for conflict in report.conflicts] == ["the river"]
    with tenant_transaction(world.tenant.id):
        learned = Memory.objects.get(agent=receiver, content="Ice bears a cart.")
        assert learned.source == f"seed:{report.digest}"
        assert learned.trust == 0.8
        assert set(Proposal.objects.filter(agent=receiver).values_list("source", flat=True)) == {
            f"seed:{report.digest}"
        }
        assert not IdentityAspect.objects.filter(agent=receiver).exists()
        assert SavedSeed.objects.get(agent_id=receiver.id).reason == "merge"
        assert AuditEvent.objects.filter(action=AuditAction.SEED_MERGED, agent_id=receiver.id).count() == 1

    again = merge(file, receiver)
    assert (again.memories, again.known["memories"]) == (0, report.memories)


def test_memories_that_become_one_count_once(world: World, export: Export) -> None:
    with tenant_transaction(world.tenant.id):
        for session in ("Monday", "Tuesday"):
            MemoryFactory(
                agent=world.agent, type=MemoryType.SEMANTIC, content="Ice bears a cart.", session=session
            )
        receiver = AgentFactory(name="Receiver")

    report = merge(export(world.agent.id), receiver)

    with tenant_transaction(world.tenant.id):
        assert report.memories == Memory.objects.filter(agent=receiver).count()
        assert Memory.objects.filter(agent=receiver, content="Ice bears a cart.").count() == 1


def test_merged_memories_expire_and_decay_as_in_the_seed(world: World, export: Export) -> None:
    soon = datetime.now(UTC) + timedelta(days=3)
    with tenant_transaction(world.tenant.id):
        fact = {"agent": world.agent, "type": MemoryType.SEMANTIC, "session": ""}
        MemoryFactory(**fact, content="The ford is open.", expires_at=soon)
        MemoryFactory(**fact, content="The ice is thick.", expires_at=datetime.now(UTC) - timedelta(days=3))
        pinned = MemoryFactory(**fact, content="Pinned here.", decay_rate=0.03)
        pin(memory_ids=[pinned.id], actor="user:ada")
        receiver = AgentFactory(name="Receiver")

    report = merge(export(world.agent.id), receiver)

    with tenant_transaction(world.tenant.id):
        rows = Memory.objects.filter(agent=receiver).values_list("content", "expires_at", "decay_rate")
        learned = {content: (expires_at, decay_rate) for content, expires_at, decay_rate in rows}
    assert learned["The ford is open."][0] == soon
    assert learned["Pinned here."][1] == 0.03
    assert "The ice is thick." not in learned
    assert report.expired == 1
