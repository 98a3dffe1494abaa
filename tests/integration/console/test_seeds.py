"""Saved seeds in the console: save, fork, send, restore, import, merge, compare, download and delete."""

from __future__ import annotations

import re
from typing import Any

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client
from django.urls import reverse

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.console.operator import seeds
from apps.fleet.models import SavedSeed
from apps.fleet.seeds.merging import MergeReport
from apps.heartbeats.models import Heartbeat, HeartbeatStatus
from apps.selves.models import Preference
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.seeds.saving import SeedReason
from tests.support.console import World, page_of

MAKE = "admin:seed-make"


@pytest.fixture
def idle_world(world: World) -> World:
    """Return the world without a heartbeat under way."""
    with tenant_transaction(world.tenant.id):
        Heartbeat.objects.filter(status=HeartbeatStatus.WAITING).update(status=HeartbeatStatus.FAILED)
    return world


def post(client: Client, address: str, **values: Any) -> str:
    response = client.post(address, values, follow=True)
    assert response.status_code == 200, address
    return response.content.decode()


def save_seed(world: World, client: Client) -> SavedSeed:
    """Save a seed of the agent by the form, and return it."""
    assert "is saved" in post(client, reverse(MAKE), act="save", agent=world.agent.id)
    with tenant_transaction(world.tenant.id):
        seed: SavedSeed = SavedSeed.objects.get(reason=SeedReason.REQUESTED)
    return seed


def test_an_owner_restores_an_agent_and_sees_the_differences(
    idle_world: World, owner: Client, operator: Client
) -> None:
    seed = save_seed(idle_world, operator)
    act = reverse("admin:seed-act", args=[seed.id])
    with tenant_transaction(idle_world.tenant.id):
        preferences = dict(Preference.objects.filter(agent=idle_world.agent).values_list("key", "value"))
        Preference.objects.filter(agent=idle_world.agent).update(value="another")

    dry_run = post(owner, act, act="restore", part=["self"], dry_run="on")
    assert "would be restored" in dry_run
    done = post(owner, act, act="restore", part=["self"])

    assert "A seed of the state before is saved" in done
    with tenant_transaction(idle_world.tenant.id):
        assert (
            dict(Preference.objects.filter(agent=idle_world.agent).values_list("key", "value")) == preferences
        )
        before = SavedSeed.objects.filter(reason=SeedReason.RESTORE).latest("saved_at")
    report = post(owner, act, act="compare", other=before.id)
    assert 'data-section="preferences"' in report
    assert "another" in report
    assert "choose at least one part" in post(owner, act, act="restore")


def test_an_owner_forks_imports_and_merges(idle_world: World, owner: Client) -> None:
    assert "Twin is created" in post(owner, reverse(MAKE), act="fork", agent=idle_world.agent.id, name="Twin")
    seed = save_seed(idle_world, owner)
    act = reverse("admin:seed-act", args=[seed.id])

    assert "Mira would be created" in post(owner, act, act="import", name="Mira", dry_run="on")
    assert "none is granted" in post(owner, act, act="import", name="Mira")
    assert "choose another name" in post(owner, act, act="import", name="Mira")
    with tenant_transaction(idle_world.tenant.id):
        mira = Agent.objects.get(name="Mira")
        Preference.objects.filter(agent=mira).update(value="another")
    merged = post(owner, act, act="merge", agent=mira.id)

    assert "Mira got 0 memories" in merged
    assert "another" in merged
    with tenant_transaction(idle_world.tenant.id):
        assert SavedSeed.objects.get(agent_id=mira.id).reason == SeedReason.MERGE


def test_a_merge_counts_in_words_of_the_right_number() -> None:
    report = MergeReport(
        agent_id=uuid7(),
        name="Mira",
        from_name="Vega",
        digest="",
        memories=1,
        proposals=2,
        known={},
        conflicts=(),
        expired=0,
        postponed=1,
        dry_run=False,
    )
    text = seeds._merged(report)
    assert "got 1 memory and 2 proposals from Vega" in text
    assert "1 proposal has no room" in text


def test_a_seed_is_downloaded_deleted_and_sent_again(idle_world: World, owner: Client) -> None:
    seed = save_seed(idle_world, owner)
    page = owner.get(page_of(seed)).content.decode()
    assert 'id="restore"' in page
    answer: Any = owner.get(reverse("admin:seed-file", args=[seed.id]))
    file = b"".join(answer.streaming_content)

    assert "is deleted" in post(owner, reverse("admin:seed-act", args=[seed.id]), act="delete")
    sent = post(owner, reverse(MAKE), act="upload", file=SimpleUploadedFile("vega.seed", file))

    assert "is verified and saved" in sent
    assert seed.digest in sent
    refused = post(owner, reverse(MAKE), act="upload", file=SimpleUploadedFile("vega.seed", file[:-9]))
    assert "Nothing was done: the seed is damaged" in refused
    with tenant_transaction(idle_world.tenant.id):
        assert AuditEvent.objects.filter(action=AuditAction.SEED_REFUSED).count() == 1
        assert AuditEvent.objects.filter(message__startswith="downloaded the saved seed").count() == 1


def test_operators_save_seeds_but_do_not_restore_them(
    idle_world: World, operator: Client, viewer: Client
) -> None:
    seed = save_seed(idle_world, operator)
    act = reverse("admin:seed-act", args=[seed.id])

    assert not re.search(r'id="(restore|import|merge|compare)"', operator.get(page_of(seed)).content.decode())
    for values in ({"act": "restore", "part": "self"}, {"act": "delete"}, {"act": "import"}):
        assert operator.post(act, values).status_code == 403
    assert operator.post(reverse(MAKE), {"act": "fork", "agent": idle_world.agent.id}).status_code == 403
    assert operator.get(reverse("admin:seed-file", args=[seed.id])).status_code == 403
    assert viewer.post(reverse(MAKE), {"act": "save", "agent": idle_world.agent.id}).status_code == 403
    assert viewer.get(reverse("admin:fleet_savedseed_add")).status_code == 403
    assert operator.post(act, {"act": "burn"}).status_code == 404
    with tenant_transaction(idle_world.tenant.id):
        assert AuditEvent.objects.filter(action=AuditAction.DENIED).count() == 6
