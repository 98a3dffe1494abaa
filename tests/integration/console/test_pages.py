"""Pages of the console: of empty tenants, of rows and of lists, and the first page with its alarms."""

from __future__ import annotations

import inspect
import re
from datetime import UTC, datetime, timedelta

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.admin.models import LogEntry
from django.contrib.admin.utils import flatten
from django.db import models
from django.template.loader import render_to_string
from django.test import Client, RequestFactory
from django.urls import reverse

from apps.agents.models import Agent
from apps.audit.models import AuditEvent
from apps.authority.services.grants import grant_actions
from apps.console import paging
from apps.console.alarms import FINDINGS_SHOWN, Alarm
from apps.console.listing import ROWS_A_PAGE, ConsoleAdmin, ReadOnly
from apps.console.pages import graph
from apps.console.pages import memory as memory_page
from apps.console.pages.fleet import read_fleet
from apps.console.pages.memory import read_memory
from apps.contacts.models import Channel, Hook, SignalWebhook
from apps.fleet.administration import limit_tenant
from apps.fleet.models import SavedSeed
from apps.knowledge.models import Document
from apps.memories.models import JobRun, Memory
from apps.memories.services.jobs.health import read_health
from apps.memories.services.jobs.job_runs import record_job_run
from apps.tenants.models import User
from apps.tenants.scope import tenant_transaction
from apps.tools.models import ToolServer
from apps.workflows.models import Workflow
from tests.factories.agents import AgentFactory
from tests.factories.heartbeats import HeartbeatFactory
from tests.factories.memories import (
    ClusterFactory,
    ClusterRelationFactory,
    ConceptFactory,
    EdgeFactory,
    EpisodeFactory,
    MemoryConceptFactory,
    MemoryFactory,
)
from tests.support.console import World, list_of, page_of
from tests.support.console_crawls import snapshot

#: A test that opens each page needs more time on a busy machine.
pytestmark = pytest.mark.timeout(300)


def test_every_page_opens_in_an_empty_tenant(viewer: Client) -> None:
    for model, page in admin.site._registry.items():
        if isinstance(page, ConsoleAdmin):
            assert viewer.get(list_of(model)).status_code in (200, 403), model
    text = viewer.get(reverse("admin:index")).content.decode()
    for words in ("There are no agents yet", "No heartbeat yet", "No process has reported", "nothing waits"):
        assert words in text


def test_an_empty_list_differs_from_a_search_without_results(owner: Client) -> None:
    address = reverse("admin:contacts_channel_changelist")
    assert "No channels yet" in owner.get(address).content.decode()
    assert "No channels found" in owner.get(address, {"kind__exact": "webhook"}).content.decode()


def test_no_page_of_a_row_has_an_inline_style() -> None:
    # Unfold colors the values of JSON fields by inline styles, which the content security policy blocks.
    for model, page in admin.site._registry.items():
        json_fields = {field.name for field in model._meta.fields if isinstance(field, models.JSONField)}
        for shown in (page, *page.inlines):
            assert not json_fields.intersection(shown.fields or ()), model


def test_no_computed_column_has_the_name_of_a_field() -> None:
    # Django takes the field before the column of the same name.
    computed = 0
    for model, page in admin.site._registry.items():
        if not isinstance(page, ConsoleAdmin):
            continue
        shown = flatten((*page.list_display, *(page.fields or ()), *page.readonly_fields))
        columns = {name for name in shown if inspect.isroutine(getattr(page, name, None))}
        assert not columns & {field.name for field in model._meta.concrete_fields}, model
        computed += len(columns)
    assert computed > 100


def test_a_tenant_without_daily_limits_is_unlimited(root: Client, world: World) -> None:
    page = root.get(page_of(world.tenant)).content.decode()
    assert "Daily heartbeats" in page
    assert page.count("unlimited") == 3
    limit_tenant(slug=world.tenant.slug, limits={"daily_heartbeats": 12_000}, actor="test")
    assert "12,000" in root.get(page_of(world.tenant)).content.decode()


def test_every_model_is_shown() -> None:
    # A composite key has no address in Django's admin; other pages show its figures.
    unshown = {
        "memories.Term",
        "memories.EmbeddingCacheEntry",
        "memories.ClusterMember",
        "memories.ClusterRelation",
        "memories.MemoryConcept",
        # The file that is downloaded has these.
        "fleet.SavedSeedPart",
        # Its number is shown with each endorsement.
        "agents.AuthorityKey",
        # Sessions are shown on the pages of their person, failures nowhere.
        "tenants.ConsoleSession",
        "tenants.SignInFailure",
        # The page of a document shows its versions and passages; terms are shown nowhere.
        "knowledge.DocumentVersion",
        "knowledge.Passage",
        "knowledge.PassageTerm",
        # Signals have a page, partial replies are in their conversation, span exports are shown nowhere.
        "signals.SignalBatch",
        "contacts.PartialReply",
        "heartbeats.SpanExport",
        # The page of the chain and the command show these.
        "audit.AuditSeal",
        "audit.SealedBlock",
        "audit.PlatformSeal",
        "audit.PlatformBlock",
    }
    for model in apps.get_models():
        label = model._meta.label
        if model.__module__.startswith("apps.") and label not in unshown:
            assert isinstance(admin.site._registry.get(model), ReadOnly), label
            assert not isinstance(model._meta.pk, models.CompositePrimaryKey)


def test_a_long_list_shows_and_names_the_first_rows(
    viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(paging, "ROWS_COUNTED", ROWS_A_PAGE + 5)
    with tenant_transaction(world.tenant.id):
        for _ in range(ROWS_A_PAGE + 10):
            MemoryFactory(agent=world.agent)
    address = reverse("admin:memories_memory_changelist")
    first = viewer.get(address).content.decode()
    assert f"the first {ROWS_A_PAGE + 5} memories" in first
    assert viewer.get(address, {"p": 2}).status_code == 200
    assert first.count("data-row") == ROWS_A_PAGE


def test_memories_are_searched_by_words_within_one_agent(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        MemoryFactory(agent=world.agent, content="The bridge was closed.")
    address = reverse("admin:memories_memory_changelist")
    query = {"q": "bridge"}
    assert "Nothing to search for" in viewer.get(address, query).content.decode()
    page = viewer.get(address, {**query, "agent__id__exact": str(world.agent.id)}).content.decode()
    assert "The bridge was closed." in page
    assert "It is about the river." not in page


def test_a_summary_is_not_beside_the_memories_of_its_episode(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        episode = EpisodeFactory(agent=world.agent)
        summary, first, second = (
            MemoryFactory(agent=world.agent, episode=episode, sequence=place) for place in range(3)
        )
        assert read_memory(first).beside == [first, second]
        assert read_memory(summary).beside == []


def test_a_memory_is_found_by_its_id(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, content="The bridge was closed.")
    page = viewer.get(reverse("admin:memories_memory_changelist"), {"q": str(memory.id)}).content.decode()
    assert "The bridge was closed." in page
    assert "It is about the river." not in page


def test_a_refused_memory_is_not_shown_as_embedded(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, embedding=None, embedding_model="refused: openai/small")
    for address in (reverse("admin:memories_memory_changelist"), page_of(memory)):
        assert "refused by small" in viewer.get(address).content.decode(), address


def test_an_archived_memory_does_not_wait_for_its_neighborhood(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent)
    assert "Maintenance does it within minutes." in viewer.get(page_of(memory)).content.decode()
    with tenant_transaction(world.tenant.id):
        Memory.objects.filter(id=memory.id).update(status="archived")
    assert "Maintenance does it within minutes." not in viewer.get(page_of(memory)).content.decode()


def test_lists_that_are_cut_say_so(viewer: Client, world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    for module, name in (
        (graph, "CASES_SHOWN"),
        (graph, "NARROWER_SHOWN"),
        (graph, "RELATED_SHOWN"),
        (memory_page, "RELATIONS_SHOWN"),
    ):
        monkeypatch.setattr(module, name, 1)
    with tenant_transaction(world.tenant.id):
        concept = ConceptFactory(agent=world.agent)
        cluster = ClusterFactory(agent=world.agent)
        memory = MemoryFactory(agent=world.agent)
    hints = {
        concept: ["the 1 strongest", "the first 1 by name"],
        cluster: ["the 1 strongest"],
        memory: ["the latest 1, read from left to right"],
    }
    for whole in (True, False):
        with tenant_transaction(world.tenant.id):
            MemoryConceptFactory(concept=concept)
            ConceptFactory(agent=world.agent, parent=concept)
            ClusterRelationFactory(source=cluster)
            EdgeFactory(agent=world.agent, source_id=memory.id)
        for row, texts in hints.items():
            page = viewer.get(page_of(row)).content.decode()
            for text in texts:
                assert (text in page) is not whole, text


@pytest.mark.parametrize("part", ["add/", "{}/delete/", "{}/history/"])
def test_no_form_adds_deletes_or_keeps_a_history(owner: Client, world: World, part: str) -> None:
    # These models have forms of their own, which call services.
    own = {
        "add/": (Agent, Channel, Document, Hook, SavedSeed, SignalWebhook, ToolServer, Workflow),
        "{}/delete/": (Agent,),
    }.get(part, ())
    for row in world.rows:
        if isinstance(row, own):
            continue
        address = list_of(type(row)) + part.format(row.pk)
        assert owner.get(address).status_code in (403, 404), address
        assert owner.post(address, {"post": "yes"}).status_code in (403, 404), address


def test_the_forms_that_add_are_the_consoles_own(owner: Client) -> None:
    for page, template in (
        ("agents_agent", "agent_new"),
        ("contacts_channel", "channel_new"),
        ("contacts_hook", "hook_new"),
        ("contacts_signalwebhook", "webhook_new"),
        ("tools_toolserver", "tool_server_new"),
        ("workflows_workflow", "workflow_form"),
    ):
        response = owner.get(reverse(f"admin:{page}_add"))
        assert f"console/{template}.html" in [used.name for used in response.templates]


def test_no_form_changes_a_row(owner: Client, world: World) -> None:
    before = snapshot()
    for row in world.rows:
        assert owner.post(page_of(row), {"name": "mine", "content": "mine"}).status_code in (200, 403, 405)
    assert snapshot() == before


def test_djangos_log_is_not_written_but_the_audit_is(world: World) -> None:
    request = RequestFactory().post("/")
    request.user = User(username="ann")
    page = admin.site._registry[type(world.agent)]
    with tenant_transaction(world.tenant.id):
        page.log_addition(request, world.agent, "made by hand")
        page.log_change(request, world.agent, "changed by hand")
        page.log_deletions(request, type(world.agent).objects.all())
        messages = list(AuditEvent.objects.order_by("id").values_list("actor", "message"))[1:]
    assert messages == [
        ("user:ann", f"{verb} the agent {world.agent.name}") for verb in ("added", "changed", "deleted")
    ]
    assert not LogEntry.objects.using("owner").exists()


def test_a_heartbeats_page_shows_mode_costs_decisions_and_prompt(viewer: Client, world: World) -> None:
    text = viewer.get(page_of(world.heartbeat)).content.decode()
    for words in (
        "Goal pursuit",
        "10 → 14",
        "openai/gpt-5-mini",
        "not used",
        "recalled 2 memories about",
        "not authorized",
        "the template does not allow deploy",
        "The prompt, by section",
        "9 tokens",
        "1,200 tokens in, 240 out",
        "$0.0008",
        'data-node="observe"',
        'data-outcome="success"',
        "Map the river",
    ):
        assert words in text, words


def test_a_heartbeats_page_links_to_the_previous_and_the_next(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        heartbeats = list(type(world.heartbeat).objects.filter(agent=world.agent).order_by("started_at"))
    middle = viewer.get(page_of(heartbeats[1])).content.decode()
    assert f'rel="prev" href="{page_of(heartbeats[0])}"' in middle
    assert f'rel="next" href="{page_of(heartbeats[2])}"' in middle
    assert 'rel="prev"' not in viewer.get(page_of(heartbeats[0])).content.decode()


def test_an_agents_page_names_the_reflex_policy(viewer: Client, world: World) -> None:
    text = viewer.get(world.agent_page).content.decode()
    assert "Reflex decides for this agent, not a language model." in text
    # It may be so although the tenant has a key: no model of it is the default.
    assert "no language model is the default" in text
    with tenant_transaction(world.tenant.id):
        type(world.agent).objects.update(model="openai/gpt-5-mini")
    assert "Reflex decides" not in viewer.get(world.agent_page).content.decode()


def test_an_agents_page_warns_of_an_agent_without_grants(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(allowed_actions=())
    warning = "This agent may do nothing"
    text = viewer.get(page_of(agent)).content.decode()
    assert warning in text
    assert f"arbor agent capability grant {agent.name} ACTION" in text
    with tenant_transaction(world.tenant.id):
        grant_actions(agents=[agent], actions=["recall"], actor="cli:eve")
    assert warning not in viewer.get(page_of(agent)).content.decode()


def test_the_first_page_says_that_no_model_is_in_use(viewer: Client, world: World) -> None:
    assert "No language model is in use." in viewer.get(reverse("admin:index")).content.decode()


def test_the_bars_of_the_fleet_have_all_counted_heartbeats(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        HeartbeatFactory(agent=world.agent, started_at=datetime.now(UTC) - timedelta(hours=23, minutes=59))
        for _ in range(2):
            HeartbeatFactory(agent=AgentFactory(), status="running")
        fleet = read_fleet()
    assert max(hour.done_height + hour.skipped_height + hour.failed_height for hour in fleet.hours) == 100
    assert sum(hour.total for hour in fleet.hours) == fleet.done + fleet.failed + fleet.skipped


def test_an_alarm_names_the_commands_that_help() -> None:
    alarm = Alarm(
        tone="warn", title="1 tool is suspended", text="Look at it.", commands=("arbor a", "arbor b")
    )
    text = render_to_string("console/parts/fleet_notices.html", {"alarms": [alarm]})
    assert "Look at it. Run <code>arbor a</code> or <code>arbor b</code>." in text


def test_alarms_link_the_rows_that_they_are_about(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        dormant = AgentFactory(status="dormant")
        failed = HeartbeatFactory(agent=world.agent, status="failed", started_at=datetime.now(UTC))
    alarms = first_page(viewer).partition('id="alarms"')[2].partition('id="fleet-cards"')[0]
    lists = [viewer.get(address) for address in re.findall(r'href="([^"?]+\?status__exact=\w+)"', alarms)]
    shown = {row.pk for response in lists for row in response.context["cl"].result_list}
    assert "A person put them to sleep, or too many heartbeats" in alarms
    assert {dormant.id, failed.id} <= shown
    assert len(lists) == 3


def test_many_findings_about_maintenance_are_summed_up(chief: Client) -> None:
    for number in range(6):
        record_job_run(name=f"arbor.decay.job_{number}", period_s=300, seconds=1)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))
    text = first_page(chief)
    assert text.count("has not succeeded for 2 h") <= FINDINGS_SHOWN
    others = len(read_health().findings) - FINDINGS_SHOWN
    assert f"{others} further findings about maintenance" in text


LATE = "The job arbor.decay.fade_memories has not succeeded for 2 h"


def first_page(client: Client) -> str:
    return str(client.get(reverse("admin:index")).content.decode())


def test_a_late_job_alarms_superusers_only(chief: Client, owner: Client) -> None:
    record_job_run(name="arbor.decay.fade_memories", period_s=300, seconds=1)
    JobRun.objects.update(succeeded_at=datetime.now(UTC) - timedelta(hours=2))
    assert LATE in first_page(chief)
    assert LATE not in first_page(owner)
