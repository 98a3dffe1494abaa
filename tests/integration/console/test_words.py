"""Words on the console's pages: one word for one thing, and words instead of ids and raw values."""

from __future__ import annotations

import re

from django.contrib import admin
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext
from django.urls import reverse
from django.utils.text import capfirst

from apps.audit.services import across_tenants
from apps.console.navigation import SECTIONS
from apps.memories.models import Upkeep
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.memory.relations import GraphNodeKind
from tests.factories.agents import AgentFactory
from tests.factories.goals import GoalFactory, GoalMemoryLinkFactory
from tests.factories.heartbeats import (
    ExternalCallFactory,
    HeartbeatFactory,
    LedgerEntryFactory,
    MaintenanceCallFactory,
    PerceptFactory,
)
from tests.factories.memories import BufferItemFactory, EdgeFactory, EpisodeFactory, MemoryFactory
from tests.factories.selves import ExperienceFactory, PeerModelFactory, ProposalFactory, SelfChangeFactory
from tests.factories.users import PASSWORD, UserFactory
from tests.support.console import World, page_of


def test_a_navigation_link_has_the_name_of_its_list() -> None:
    models = {
        f"{model._meta.app_label}_{model._meta.model_name}_changelist": model
        for model in admin.site._registry
    }
    named = 0
    for section in SECTIONS:
        for page in section.pages:
            model = models.get(page.url_name)
            if model is not None:
                assert page.title == capfirst(model._meta.verbose_name_plural)
                named += 1
    assert named > 30


def test_a_list_is_named_after_its_rows(viewer: Client, world: World) -> None:
    for page, name in (
        ("memories_edge", "relation"),
        ("calls_dailyusage", "daily usage"),
        ("memories_upkeep", "memory in upkeep"),
    ):
        text = viewer.get(reverse(f"admin:{page}_changelist")).content.decode()
        title = text.partition("<title>")[2].partition("</title>")[0]
        assert "Select" not in title
        assert f"1 {name}" in " ".join(text.split())


def test_relations_are_shown_by_their_ends_in_a_constant_query_count(viewer: Client, world: World) -> None:
    address = reverse("admin:memories_edge_changelist")

    def count_queries() -> int:
        with CaptureQueriesContext(connection) as queries:
            viewer.get(address)
        return len(queries)

    count_queries()  # some rows, such as content types, are read once for a process
    few = count_queries()
    with tenant_transaction(world.tenant.id):
        for number in range(9):
            memory = MemoryFactory(content=f"The ferry stopped on day {number}.")
            goal = GoalFactory(agent=memory.agent, title=f"Explain day {number}")
            edge = EdgeFactory(
                agent=memory.agent, source_id=memory.id, target_kind=GraphNodeKind.GOAL, target_id=goal.id
            )
    assert count_queries() == few
    text = viewer.get(address).content.decode()
    for words in ("The ferry stopped on day 0.", "Explain day 8"):
        assert words in text
    assert f'href="{page_of(goal)}"' in text
    assert "Explain day 8" in viewer.get(page_of(edge)).content.decode()


def test_a_deleted_end_of_a_relation_is_shown_as_gone(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        edge = EdgeFactory(agent=world.agent, source_id=uuid7())
    assert ">gone<" in viewer.get(page_of(edge)).content.decode()


def test_a_source_is_a_link_in_words(viewer: Client, world: World) -> None:
    heartbeat, chat = str(world.heartbeat.id), str(uuid7())
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, source=f"heartbeat:{heartbeat}", session=f"chat:{chat}")
        rows = [
            ExperienceFactory(agent=world.agent, heartbeat_id=heartbeat),
            ProposalFactory(
                agent=world.agent, source=f"heartbeat:{heartbeat}", decided_by=f"heartbeat:{heartbeat}"
            ),
            memory,
        ]
        EpisodeFactory(agent=world.agent, session=f"chat:{chat}", summary="")
    for row in rows:
        text = viewer.get(page_of(row)).content.decode()
        assert f'href="{page_of(world.heartbeat)}">a heartbeat</a>' in text, row
        assert f"heartbeat:{heartbeat}" not in text, row
    for page in (world.agent_page, reverse("admin:memories_episode_changelist"), page_of(memory)):
        text = viewer.get(page).content.decode()
        assert "a conversation" in text, page
        assert f"chat:{chat}" not in text, page


def test_evidence_and_changed_rows_are_shown_by_their_texts(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        memory = MemoryFactory(agent=world.agent, content="The ferry stopped for nine days.")
        rows = [
            ProposalFactory(agent=world.agent, evidence=[str(memory.id)]),
            SelfChangeFactory(agent=world.agent, target_id=memory.id),
            BufferItemFactory(agent=world.agent, promoted_to=memory),
        ]
    for row in rows:
        text = viewer.get(page_of(row)).content.decode()
        assert f'href="{page_of(memory)}"' in text, row
        assert "The ferry stopped for nine days." in text, row


def test_a_memory_of_a_goal_is_named_after_the_goal(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent, title="Chart the coast")
        link = GoalMemoryLinkFactory(goal=goal, memory=MemoryFactory(agent=world.agent))
    text = viewer.get(page_of(link)).content.decode()
    title = text.partition("<title>")[2].partition("</title>")[0]
    assert "of “Chart the coast”" in title


def test_an_empty_list_names_the_defaults_in_force(viewer: Client) -> None:
    boundaries = viewer.get(reverse("admin:selves_boundary_changelist")).content.decode()
    assert "Every agent has these: no harm, no deception, user privacy" in boundaries
    policies = viewer.get(reverse("admin:agents_agentpolicy_changelist")).content.decode()
    assert "All agents have the default policy: a budget of energy" in policies
    assert "No relations yet" in viewer.get(reverse("admin:memories_edge_changelist")).content.decode()


def test_an_empty_field_is_hidden_or_shown_as_none(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        goal = GoalFactory(agent=world.agent, deadline=None, source="user_request", blocked_by="")
        peer = PeerModelFactory(agent=world.agent, interests=[])
        proposal = ProposalFactory(agent=world.agent, evidence=[], change={})
    text = viewer.get(page_of(goal)).content.decode()
    assert "user request" in text
    for name in ("Deadline", "Blocked by", "Obstacles"):
        assert name not in text, name
    for row, empty in ((peer, 1), (proposal, 2)):
        assert viewer.get(page_of(row)).content.decode().count('<span class="ar-subtle">none</span>') == empty


def test_a_model_calls_page_shows_its_request_and_its_reply(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        call = ExternalCallFactory(
            heartbeat=world.heartbeat, request={"system": "Be brief.\nBe kind.", "messages": []}, dropped=[]
        )
        answer = ExternalCallFactory(heartbeat=world.heartbeat, purpose="answer", reply="nine days")
    text = viewer.get(page_of(call)).content.decode()
    assert "Be brief.\nBe kind." in text
    for words in (
        "The request, as sent",
        "The reply, as read",
        f'href="{page_of(world.heartbeat)}">a heartbeat</a>',
    ):
        assert words in text, words
    assert "Not used of the reply" not in text
    answer_page = viewer.get(page_of(answer)).content.decode()
    assert "nine days" in answer_page
    assert "It could not be read" not in answer_page


def test_lists_write_names_as_words(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        HeartbeatFactory(agent=world.agent, mode="plan_execution")
        PerceptFactory(agent=world.agent, kind="user_message")
    heartbeats = viewer.get(reverse("admin:heartbeats_heartbeat_changelist")).content.decode()
    assert "plan execution" in heartbeats
    assert "plan_execution" not in heartbeats
    assert "user message" in viewer.get(reverse("admin:agents_percept_changelist")).content.decode()


def test_platform_events_hide_look_ups_by_name_by_default(root: Client) -> None:
    with across_tenants(actor="cli:ann", reason="finding the agent 'Mira' by its name"):
        pass
    with across_tenants(actor="cli:ann", reason="list of agents"):
        pass
    address = reverse("admin:audit_platformevent_changelist")
    text = root.get(address).content.decode()
    assert "list of agents" in text
    assert "cross tenant: view" in text
    assert "finding the agent" not in text
    assert "are left out" in text
    assert "finding the agent" in root.get(address, {"look_ups": "shown"}).content.decode()


def test_the_link_to_look_ups_keeps_the_other_filters(root: Client) -> None:
    address = reverse("admin:audit_platformevent_changelist")
    query = {"action__exact": "cross_tenant.view"}
    filters = "?action__exact=cross_tenant.view"
    assert f'href="{filters}&amp;look_ups=shown"' in root.get(address, query).content.decode()
    assert (
        f'href="{filters}">Leave them out'
        in root.get(address, query | {"look_ups": "shown"}).content.decode()
    )


def test_a_failed_sign_in_is_reported_once_in_the_consoles_words(database: None) -> None:
    UserFactory(username="ann")
    address = reverse("admin:login")
    assert 'id="refusal"' not in Client().get(address).content.decode()
    text = Client().post(address, {"username": "ann", "password": "wrong"}).content.decode()
    assert "This name and password do not go together" in text
    assert text.count('role="alert"') == 1
    for words in ("staff account", "correct the error"):
        assert words not in text
    signed_in = Client().post(address, {"username": "ann", "password": PASSWORD})
    assert signed_in.status_code == 302


def test_rows_show_words_for_flags_and_empty_values(viewer: Client, world: World) -> None:
    upkeep = next(row for row in world.rows if row._meta.label == "memories.Upkeep")
    with tenant_transaction(world.tenant.id):
        Upkeep.objects.filter(pk=upkeep.pk).update(neighbors=None, stale=True)
    text = viewer.get(page_of(upkeep)).content.decode()
    assert '<span class="ar-subtle">none</span>' in text
    assert "Unweighed" not in text
    schedule = next(row for row in world.rows if row._meta.label == "agents.HeartbeatSchedule")
    listed = viewer.get(reverse("admin:agents_heartbeatschedule_changelist")).content.decode()
    assert f'href="{page_of(schedule)}"' in listed


def test_a_single_thing_is_written_in_the_singular(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory()
        memory = MemoryFactory(agent=agent)
        call = MaintenanceCallFactory(
            agent=agent,
            purpose="extract",
            subject={"memories": [str(memory.id)]},
            subject_key=f"memories:{memory.id}",
            request={"system": "", "messages": [{"role": "user", "content": "?"}]},
        )
        LedgerEntryFactory(call=call, tries=2, cost_usd=None)
        shown = {
            f"{reverse('admin:model-usage')}?agent={agent.id}": ("1 retry", "1 call of unknown price"),
            page_of(call): ("1 message<", "maintenance, about a memory"),
            reverse("admin:operations"): (f"{agent.name}, 1 memory,",),
            page_of(memory): ("Not used yet.",),
        }
    for address, words in shown.items():
        text = viewer.get(address).content.decode()
        assert [word for word in words if word not in text] == [], address


def test_the_title_of_a_page_writes_a_name_as_it_is(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        agent = AgentFactory(name="vega")
    title = re.search(r'tracking-tight">(vega)<', viewer.get(page_of(agent)).content.decode(), re.IGNORECASE)
    assert title
    assert title[1] == "vega"
