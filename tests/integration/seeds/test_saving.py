"""Saved seeds: their ids, their age, and seeds that are refused."""

from __future__ import annotations

import io
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.fleet.history import sweep_history
from apps.fleet.models import SavedSeed
from apps.fleet.seeds import merging, writing
from apps.fleet.seeds.checks import Values
from apps.fleet.seeds.files import receive_seed, verify_seed
from apps.fleet.seeds.importing import ImportOptions, import_seed
from apps.fleet.seeds.merging import MergeOptions, merge_seed
from apps.fleet.seeds.profiles import checked_profile, profile_values
from apps.fleet.seeds.saving import save_seed, save_upload
from apps.fleet.seeds.sections import BY_NAME
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import SeedInvalid
from arbor.ids import uuid7
from arbor.seeds.saving import LATEST, SeedReason
from tests.factories.agents import AgentFactory
from tests.integration.seeds.conftest import Export
from tests.support.console import World


def store_seed_row(world: World, **values: Any) -> SavedSeed:
    given = {
        "agent_id": world.agent.id,
        "name": world.agent.name,
        "public_id": world.agent.public_id,
        "reason": SeedReason.REQUESTED,
        "digest": "0" * 64,
        "bytes": 0,
        "actor": "cli:ann",
        "at": datetime.now(UTC),
    }
    row: SavedSeed = SavedSeed.objects.create(tenant_id=world.tenant.id, **(given | values))
    return row


def test_a_seed_uploaded_to_two_tenants_is_stored_once_in_each(
    world: World, other_tenant: Tenant, export: Export
) -> None:
    file = export(world.agent.id)
    rows = [
        save_upload(tenant_id=tenant.id, source=file, actor="user:ann")
        for tenant in (world.tenant, other_tenant, other_tenant)
    ]

    assert rows[1].id == rows[2].id != rows[0].id
    assert {row.digest for row in rows} == {verify_seed(file).manifest.trailer.digest}


def test_a_seed_with_the_id_of_another_one_is_refused(world: World, export: Export) -> None:
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        store_seed_row(world, id=verify_seed(file).manifest.header.id)

    with pytest.raises(SeedInvalid, match="another digest"):
        save_upload(tenant_id=world.tenant.id, source=file, actor="user:ann")

    with tenant_transaction(world.tenant.id):
        assert AuditEvent.objects.filter(action=AuditAction.SEED_REFUSED).count() == 1


def test_an_uploaded_seed_ages_from_its_upload(world: World) -> None:
    long_ago = datetime.now(UTC) - timedelta(days=400)
    with tenant_transaction(world.tenant.id):
        uploaded = store_seed_row(world, agent_id=uuid7(), reason=SeedReason.UPLOADED, at=long_ago)
        save_seed(agent_id=world.agent.id, reason=SeedReason.REQUESTED, actor="cli:ann")

    sweep_history()

    with tenant_transaction(world.tenant.id):
        assert SavedSeed.objects.filter(id=uploaded.id).exists()


def test_expired_seeds_are_deleted_without_a_new_save(world: World) -> None:
    now = datetime.now(UTC)
    with tenant_transaction(world.tenant.id):
        SavedSeed.objects.all().delete()
        for days in range(30, 30 + LATEST + 2):
            store_seed_row(world, saved_at=now - timedelta(days=days))
        store_seed_row(world, agent_id=uuid7(), saved_at=now - timedelta(days=31))
        left = store_seed_row(world, agent_id=uuid7(), saved_at=now - timedelta(days=29))

    sweep_history()

    with tenant_transaction(world.tenant.id):
        assert SavedSeed.objects.filter(agent_id=world.agent.id).count() == LATEST
        assert SavedSeed.objects.exclude(agent_id=world.agent.id).get().id == left.id


def test_the_refusal_of_a_changed_seed_is_audited(world: World, export: Export) -> None:
    data = bytearray(export(world.agent.id).getvalue())
    data[len(data) // 2] ^= 1

    with pytest.raises(SeedInvalid):
        receive_seed(io.BytesIO(bytes(data)), tenant_id=world.tenant.id, actor="cli:ann")

    with tenant_transaction(world.tenant.id):
        refused = AuditEvent.objects.get(action=AuditAction.SEED_REFUSED)
    assert refused.actor == "cli:ann"


def spoiling_check(section: str, column: str, value: object) -> Callable[[Any, Values], Any]:
    """Return `checked_values`, with a wrong value put into every row of a section before the check."""
    check = writing.checked_values

    def check_spoiled(found: Any, values: Values) -> Any:
        return check(found, values | {column: value} if found.name == section else values)

    return check_spoiled


@pytest.mark.parametrize(
    ("section", "column", "value"),
    [
        ("memories", "content", 7),
        ("memories", "detail", []),
        ("memories", "status", ["active"]),
        ("memories", "importance", "high"),
        ("memories", "occurred_at", "infinity"),
        ("memories", "occurred_at", "0001-01-01T00:00:00+14:00"),
        ("goals", "deadline", "soon"),
        ("beliefs", "statement", None),
        ("state", "working_memory", "empty"),
        ("state", "working_memory", {"version": 3, "thoughts": None}),
        ("state", "working_memory", {"version": 3, "concerns": [7]}),
        ("upkeep", "neighbors", ["near"]),
        ("upkeep", "neighbors", {"near": 1.0}),
        ("upkeep", "neighbors", {"None": 1.0}),
        ("upkeep", "neighbors", {"01a21f85-9bcb-7e54-a7cc-3f0452cac862": True}),
        ("self_history", "what", "mood"),
        ("state", "notices", [{"kind": "unheard of"}]),
        ("state", "learned", {"recall": 3}),
        ("beliefs", "filters", [{"effect": "none"}]),
        ("boundaries", "patterns", [7]),
        ("boundaries", "vectors", {"model": "m", "dimension": 2, "rows": [[0.5]]}),
        ("clusters", "keywords", [None]),
        ("concepts", "ancestors", [["sea"]]),
        ("knowledge", "categories", [{}]),
        ("peers", "interests", [1]),
        ("plans", "dependencies", ["a boat", 2]),
        ("plans", "met", [None]),
    ],
)
def test_a_wrong_value_is_refused(section: str, column: str, value: object) -> None:
    row = {check.column: _valid(check) for check in BY_NAME[section].checks}
    writing.checked_values(BY_NAME[section], row)

    with pytest.raises(SeedInvalid, match=column):
        writing.checked_values(BY_NAME[section], row | {column: value})


@pytest.mark.parametrize(
    ("kind", "change"),
    [
        ("identity", {"aspect": "style"}),
        ("identity", {"aspect": ["trait"]}),
        ("identity", {"aspect": "trait", "strength": "strong"}),
        ("belief", {"category": "values"}),
        ("belief", {"belief": "the first", "confidence": 0.5}),
        ("belief", {"belief": "01a21f85-9bcb-7e54-a7cc-3f0452cac862", "confidence": 7}),
    ],
)
def test_a_proposal_that_nobody_can_accept_is_refused(kind: str, change: dict[str, Any]) -> None:
    row = {check.column: _valid(check) for check in BY_NAME["proposals"].checks}
    row |= {"kind": kind, "status": "pending"}
    writing.checked_values(BY_NAME["proposals"], row)

    with pytest.raises(SeedInvalid, match="change"):
        writing.checked_values(BY_NAME["proposals"], row | {"change": change})


@pytest.mark.parametrize("after", [{"belief": ["held"]}, {"aspect": {"1": "I am there."}}])
def test_a_birth_that_no_page_can_read_is_refused(after: dict[str, Any]) -> None:
    row = {check.column: _valid(check) for check in BY_NAME["self_history"].checks} | {"what": "birth"}
    writing.checked_values(BY_NAME["self_history"], row)

    with pytest.raises(SeedInvalid, match="after"):
        writing.checked_values(BY_NAME["self_history"], row | {"after": after})


#: Values of columns for which the least one is not valid, or not checked further.
VALID: dict[str, object] = {"neighbors": None, "what": "belief"}


def _valid(check: Any) -> object:
    if check.column in VALID:
        return VALID[check.column]
    if check.allowed:
        return min(check.allowed, key=str)
    if check.is_time:
        return "2026-11-23T00:00:00+00:00"
    return {dict: {}, list: [], str: "", bool: True}.get(check.types[0], 0)


@pytest.mark.parametrize(
    ("column", "value"),
    [
        ("name", ["Vega"]),
        ("trust_tier", "boundless"),
        ("model", "no handle"),
        ("pipeline", "digraph { act }"),
        ("character", {"traits": 7}),
        ("published", "yes"),
    ],
)
def test_a_wrong_profile_is_refused(world: World, column: str, value: object) -> None:
    with tenant_transaction(world.tenant.id):
        profile = profile_values(world.agent)
    checked_profile(profile)

    with pytest.raises(SeedInvalid):
        checked_profile(profile | {column: value})


def test_wrong_rows_of_a_signed_seed_change_nothing(
    world: World, export: Export, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = export(world.agent.id)
    with tenant_transaction(world.tenant.id):
        receiver = AgentFactory(name="Receiver")
    seed = verify_seed(file)
    spoilt_memories, spoilt_beliefs = (
        spoiling_check("memories", "content", 7),
        spoiling_check("beliefs", "statement", 7),
    )
    monkeypatch.setattr(writing, "checked_values", spoilt_memories)
    monkeypatch.setattr(merging, "checked_values", spoilt_beliefs)

    with pytest.raises(SeedInvalid, match="content '7'"):
        import_seed(tenant_id=world.tenant.id, seed=seed, options=ImportOptions(name="Copy"), actor="cli:ann")
    with pytest.raises(SeedInvalid, match="statement '7'"):
        merge_seed(
            tenant_id=world.tenant.id,
            agent_id=receiver.id,
            seed=seed,
            options=MergeOptions(),
            actor="cli:ann",
        )

    with tenant_transaction(world.tenant.id):
        assert AuditEvent.objects.filter(action=AuditAction.SEED_REFUSED).count() == 2
        assert not Agent.objects.filter(name="Copy").exists()
        assert not SavedSeed.objects.filter(agent_id=receiver.id).exists()
