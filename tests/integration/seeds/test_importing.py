"""Import and fork agents: another identity with the same memories, goals and self."""

from __future__ import annotations

import io
from typing import Any

import pytest

from apps.agents.models import Agent, AgentKey, AgentPolicy, AgentState, RequestedCapability
from apps.agents.services.identity import identity_of
from apps.audit.models import AuditAction, AuditEvent
from apps.authority.models import CapabilityGrant
from apps.fleet.seeds import capture, files
from apps.fleet.seeds.checks import Values
from apps.fleet.seeds.files import verify_seed
from apps.fleet.seeds.importing import ImportOptions, fork_agent, import_seed
from apps.fleet.seeds.restoring import SeedReport
from apps.fleet.seeds.sections import SECTIONS, SeedSection
from apps.memories.models import Edge, Memory, Term
from apps.memories.services.store.remember import store
from apps.selves.models import Belief, Experience, PeerModel
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import AlreadyExists, SeedInvalid
from arbor.memory.content import content_hash
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.signing import is_own, verify_signatures
from tests.integration.memories.conftest import a_memory
from tests.integration.seeds.conftest import Export
from tests.support.console import World

SECTION_NAMES = {section.name for section in SECTIONS}
#: Former names of columns by today's names, by section.
FORMER_NAMES = {
    "policy": {"daily_heartbeats": "daily_beats"},
    "state": {
        "heartbeats": "beats",
        "idle_heartbeats": "idle_beats",
        "stale_heartbeats": "stale_beats",
        "last_heartbeat_at": "last_beat_at",
    },
    "experiences": {"heartbeat_number": "tick"},
    "peers": {"last_heartbeat_number": "last_tick"},
}


def import_into(
    tenant: Tenant, file: io.BytesIO, name: str = "Copy", *, trust_foreign: bool = False
) -> SeedReport:
    return import_seed(
        tenant_id=tenant.id,
        seed=verify_seed(file),
        options=ImportOptions(name=name, trust_foreign=trust_foreign),
        actor="cli:ann",
    )


def test_an_imported_agent_has_all_rows_and_another_identity(world: World, export: Export) -> None:
    file = export(world.agent.id)

    report = import_into(world.tenant, file)

    with tenant_transaction(world.tenant.id):
        agent = Agent.objects.get(id=report.agent_id)
        assert (agent.name, agent.status, agent.published) == ("Copy", AgentStatus.CREATED, False)
        assert agent.public_id != world.agent.public_id
        identity_of(agent.id).require_active()
        keys = AgentKey.objects.filter(agent=agent).values_list("public_key", flat=True)
        old = AgentKey.objects.filter(agent=world.agent).values_list("public_key", flat=True)
        assert not {bytes(key) for key in keys} & {bytes(key) for key in old}
    # A message that waits for an answer is not copied: only the original answers it.
    copied = verify_seed(file).manifest.rows | {"percepts": 0}
    assert verify_seed(export(agent.id)).manifest.rows == copied


def test_an_imported_agent_is_granted_nothing(world: World, export: Export) -> None:
    described = "Reads the gauges. " * 100
    with tenant_transaction(world.tenant.id):
        RequestedCapability.objects.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            resource="arbor://fs/read/gauges/**",
            description=described,
        )
    report = import_into(world.tenant, export(world.agent.id))

    with tenant_transaction(world.tenant.id):
        copied = RequestedCapability.objects.get(
            agent_id=report.agent_id, resource="arbor://fs/read/gauges/**"
        )
        assert copied.description == described
        assert not CapabilityGrant.objects.filter(agent_id=report.agent_id).exists()
    assert "arbor://actions/execute/recall" in report.requests
    assert "arbor://fs/read/**" in report.requests


def test_ids_of_rows_are_new_and_still_refer_to_each_other(world: World, export: Export) -> None:
    report = import_into(world.tenant, export(world.agent.id))

    with tenant_transaction(world.tenant.id):
        memory = Memory.objects.get(agent_id=report.agent_id, content__startswith="It is about")
        old = Memory.objects.get(agent=world.agent, content__startswith="It is about")
        assert memory.id != old.id
        assert memory.episode.agent_id == report.agent_id
        assert Edge.objects.filter(agent_id=report.agent_id, source_id=memory.id).exists()
        assert not Edge.objects.filter(agent_id=report.agent_id, source_id=old.id).exists()
        belief = Belief.objects.get(agent_id=report.agent_id, evidence__isnull=False)
        assert belief.evidence.get().memory.agent_id == report.agent_id
        assert Term.objects.filter(agent_id=report.agent_id).exists()


def test_a_copy_finds_texts_with_its_own_ids_by_their_hash(world: World, export: Export) -> None:
    text = "My public id is {}."
    with tenant_transaction(world.tenant.id):
        known = [a_memory(text.format(world.agent.public_id), session="")]
        store(agent_id=world.agent.id, memories=known, vectors=None)

    report = import_into(world.tenant, export(world.agent.id))

    with tenant_transaction(world.tenant.id):
        copied = Memory.objects.get(agent_id=report.agent_id, content__startswith=text[:15])
        assert bytes(copied.content_hash) == content_hash(copied.content)
        again = a_memory(copied.content, occurred_at=copied.occurred_at)
        assert store(agent_id=report.agent_id, memories=[again], vectors=None).ids == (copied.id,)


def test_a_seed_is_imported_into_another_tenant(world: World, other_tenant: Tenant, export: Export) -> None:
    report = import_into(other_tenant, export(world.agent.id))

    with tenant_transaction(other_tenant.id):
        assert Agent.objects.get().id == report.agent_id
        assert Memory.objects.filter(agent_id=report.agent_id).count() == report.rows["memories"]


def test_a_name_in_use_is_refused(world: World, export: Export) -> None:
    with pytest.raises(AlreadyExists, match="choose another name"):
        import_into(world.tenant, export(world.agent.id), world.agent.name)

    with tenant_transaction(world.tenant.id):
        assert Agent.objects.count() == 1


@pytest.fixture
def foreign_installation(monkeypatch: pytest.MonkeyPatch) -> None:
    """Verify seeds as an installation does whose keys did not sign them."""

    def verify_as_foreign(manifest: SeedManifest) -> bool:
        verify_signatures(manifest)
        return is_own(manifest, [bytes(32)])

    monkeypatch.setattr(files, "verify_seed_signatures", verify_as_foreign)


@pytest.mark.usefixtures("foreign_installation")
def test_a_foreign_seed_is_imported_only_where_it_is_trusted(world: World, export: Export) -> None:
    file = export(world.agent.id)

    with pytest.raises(SeedInvalid, match="another installation"):
        import_into(world.tenant, file)
    with tenant_transaction(world.tenant.id):
        assert Agent.objects.count() == 1
        assert AuditEvent.objects.filter(action=AuditAction.SEED_REFUSED).count() == 1

    report = import_into(world.tenant, file, trust_foreign=True)
    assert report.name == "Copy"
    assert report.rows.keys() == SECTION_NAMES - {"percepts"}


@pytest.mark.parametrize(
    "values",
    [
        {"time_zone": "Mars/Olympus"},
        {"tier_models": {"standard": ["nowhere/model"]}},
        {"energy": {"cap": "much"}},
    ],
)
def test_a_seed_with_an_invalid_policy_is_not_imported(
    world: World, export: Export, values: dict[str, Any]
) -> None:
    with tenant_transaction(world.tenant.id):
        AgentPolicy.objects.filter(agent=world.agent).update(**values)

    with pytest.raises(SeedInvalid, match="the policy of the seed"):
        import_into(world.tenant, export(world.agent.id))

    with tenant_transaction(world.tenant.id):
        assert Agent.objects.count() == 1


def test_a_seed_with_former_names_of_columns_is_read(
    world: World, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    values_of = capture._values

    def with_former_names(section: SeedSection, values: Values) -> Values:
        former = FORMER_NAMES.get(section.name, {})
        return {former.get(name, name): value for name, value in values_of(section, values).items()}

    with monkeypatch.context() as patched:
        patched.setattr(capture, "_values", with_former_names)
        file = export(world.agent.id)
    report = import_into(world.tenant, file)

    assert report.unknown == {}
    with tenant_transaction(world.tenant.id):
        before = AgentState.objects.get(agent=world.agent)
        after = AgentState.objects.get(agent_id=report.agent_id)
        counted = (after.heartbeats, after.idle_heartbeats, after.stale_heartbeats, after.last_heartbeat_at)
        assert counted == (
            before.heartbeats,
            before.idle_heartbeats,
            before.stale_heartbeats,
            before.last_heartbeat_at,
        )
        assert before.heartbeats > 0
        ids = (world.agent.id, report.agent_id)
        limits = AgentPolicy.objects.filter(agent_id__in=ids)
        assert [limit for (limit,) in limits.values_list("daily_heartbeats")] == [24, 24]
        for rows, column in (
            (Experience.objects, "heartbeat_number"),
            (PeerModel.objects, "last_heartbeat_number"),
        ):
            numbers = [sorted(rows.filter(agent_id=id_).values_list(column, flat=True)) for id_ in ids]
            assert numbers[0] == numbers[1] != []


def test_a_changed_seed_changes_nothing(world: World, export: Export) -> None:
    data = bytearray(export(world.agent.id).getvalue())
    data[len(data) // 2] ^= 1

    with pytest.raises(SeedInvalid):
        import_into(world.tenant, io.BytesIO(bytes(data)))

    with tenant_transaction(world.tenant.id):
        assert Agent.objects.count() == 1


def test_a_fork_has_the_same_memories(world: World) -> None:
    report = fork_agent(tenant_id=world.tenant.id, agent_id=world.agent.id, name="Twin", actor="cli:ann")

    with tenant_transaction(world.tenant.id):
        forked = AuditEvent.objects.get(action=AuditAction.SEED_FORKED)
        assert forked.detail["from_agent"] == str(world.agent.id)
        contents = [
            set(Memory.objects.filter(agent_id=agent_id).values_list("content", flat=True))
            for agent_id in (world.agent.id, report.agent_id)
        ]
    assert contents[0] == contents[1]
    assert report.rows.keys() == SECTION_NAMES - {"percepts"}


def test_a_seed_above_the_limit_of_the_installation_is_refused(
    world: World, export: Export, settings: Any
) -> None:
    file = export(world.agent.id)
    settings.ARBOR_SEED_MAX_MB = 0

    with pytest.raises(SeedInvalid, match="more than 0 bytes"):
        verify_seed(file)
