"""Console pages of real heartbeats in a real browser, with screenshots.

`KEEP_PICTURES=FOLDER pytest tests/acceptance/test_pages.py` stores the screenshots there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.inline import run_heartbeat_now
from apps.memories.models import Cluster, Episode, Memory, Upkeep
from apps.memories.services.store.remember import remember
from apps.queues import captured
from apps.tenants.models import Role, Tenant
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import add_member, create_tenant
from arbor.memory.values import NewMemory
from tests.acceptance.browser import Browser, needs_chromium
from tests.acceptance.console_server import sign_in
from tests.factories.heartbeats import ProcessFactory
from tests.factories.memories import (
    ClusterFactory,
    ClusterMemberFactory,
    ClusterRelationFactory,
    ConceptFactory,
    EdgeFactory,
    EpisodeFactory,
    MemoryConceptFactory,
    MemoryFactory,
)
from tests.factories.selves import BeliefFactory
from tests.factories.users import UserFactory
from tests.support.database import DatabaseCleaner

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600), needs_chromium]

CONVERSATION = (
    ("Ana", "The river froze in January, and the ferry stopped for nine days."),
    ("Ben", "Was that the winter with the two depth readings at the north quay?"),
    ("Ana", "Yes. One says 11.2 metres, the other 9.8. They cannot both be right."),
    ("Ben", "Could you find out which of them was taken at low tide?"),
)


@dataclass(frozen=True, kw_only=True)
class Scene:
    """A tenant whose agents have run heartbeats, the console's address, and a signed-in browser."""

    browser: Browser
    url: str
    agent: Agent
    heartbeats: list[Heartbeat]


@pytest.fixture(scope="module")
def browser(address: str) -> Iterator[Browser]:
    with Browser() as opened:
        yield opened


def add_member_of_two_tenants(tenant: Tenant) -> None:
    user = UserFactory(username="ann")
    add_member(tenant=tenant, user=user, role=Role.OPERATOR)
    other = create_tenant(slug="globex", name="Globex")
    add_member(tenant=other, user=user, role=Role.VIEWER)


def run_agents(tenant: Tenant) -> tuple[Agent, list[Heartbeat]]:
    """Create three agents with memories of a conversation and heartbeats by the reflex policy."""
    seed_builtin_templates()
    agents = []
    with captured():
        for name, template in (("Vega", "Researcher"), ("Rigel", "Scout"), ("Mira", "Monitor")):
            with tenant_transaction(tenant.id):
                agent = create_agent(
                    name=name, template_name=template, actor="user:ann", interval=timedelta(minutes=30)
                )
                start_agent(agent_id=agent.id, actor="user:ann")
            agents.append(agent)
        vega = agents[0]
        conversation = [
            NewMemory(
                content=text,
                role=speaker,
                session="quay",
                position=place,
                occurred_at=datetime.now(UTC) - timedelta(hours=3, minutes=-place),
            )
            for place, (speaker, text) in enumerate(CONVERSATION)
        ]
        remember(tenant_id=tenant.id, agent_id=vega.id, memories=conversation)
        heartbeats = [run_heartbeat_now(agent_id=vega.id, tenant_id=tenant.id) for _ in range(3)]
        run_heartbeat_now(agent_id=agents[1].id, tenant_id=tenant.id)
    return vega, heartbeats


@pytest.fixture(scope="module")
def scene(
    address: str, browser: Browser, emptier: DatabaseCleaner, django_db_blocker: Any
) -> Iterator[Scene]:
    """Return the scene that all tests of this file share, in their order."""
    with django_db_blocker.unblock():
        tenant = create_tenant(slug="acme", name="Acme")
        add_member_of_two_tenants(tenant)
        agent, heartbeats = run_agents(tenant)
        for kind, queues in (("worker", "heartbeat"), ("worker", "llm,embedding"), ("scheduler", "")):
            ProcessFactory(kind=kind, queues=queues)
        sign_in(browser, address)
        yield Scene(browser=browser, url=f"{address}/admin", agent=agent, heartbeats=heartbeats)
        emptier.empty()


def picture(browser: Browser, folder: Path, name: str) -> None:
    """Save a picture of a page, and check that it is not nearly empty."""
    assert browser.picture(folder, name).stat().st_size > 30_000, f"the picture {name} is nearly empty"


def test_the_first_page_shows_the_fleet(scene: Scene, tmp_path: Path) -> None:
    browser = scene.browser
    assert browser.address == f"{scene.url}/", "signing in leads there"
    cards = browser.text("#fleet-cards")
    assert "Active agents\n3 of 3" in cards
    assert "4 done" in cards
    assert "0 failed" in cards
    assert "No language model is in use." in browser.text("#reflex-notice")
    text = browser.text()
    for words in ("Vega", "Rigel", "Mira", "Heartbeats by hour", "Recent heartbeats", "llm,embedding"):
        assert words in text
    assert browser.count(".ar-strip i") == 4
    assert browser.count(".ar-bar-done") in (1, 2)
    picture(browser, tmp_path, "fleet")


def test_the_page_of_an_agent_shows_its_activity(scene: Scene, tmp_path: Path) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/agents/agent/{scene.agent.id}/change/")
    text = browser.text()
    for words in (
        "Vega",
        "active",
        "Researcher",
        scene.agent.public_id,
        "Reflex decides for this agent, not a language model.",
        "energy of 20",
        "Working memory",
        "every 30 min",
        scene.heartbeats[-1].narrative[:60],
    ):
        assert words in text, words
    assert browser.count("#tracker a") == 3
    assert browser.count("#goals .ar-goal") >= 1
    assert "sealed" not in browser.evaluate("document.documentElement.outerHTML")
    picture(browser, tmp_path, "agent")


def test_the_page_of_a_heartbeat_explains_its_actions(scene: Scene, tmp_path: Path) -> None:
    browser, heartbeat = scene.browser, scene.heartbeats[-1]
    browser.open(f"{scene.url}/heartbeats/heartbeat/{heartbeat.id}/change/")
    facts = browser.text("#heartbeat-facts")
    assert "reflex/policy" in facts
    assert "→" in facts
    assert "Reflex decided this heartbeat, not a language model." in browser.text("#reflex-notice")
    assert browser.text("#narrative") == heartbeat.narrative
    assert heartbeat.actions
    for action in heartbeat.actions:
        assert action["action"] in browser.text("#actions")
        assert action["summary"][:50] in browser.text("#actions")
    passed = browser.evaluate(
        "[...document.querySelectorAll('.ar-box[data-outcome=success]')].map(box => box.dataset.node)"
    )
    assert {"observe", "orient", "process", "decide", "act", "record", "done"} <= set(passed)
    assert browser.count(".ar-arrow.ar-passed") >= len(passed) - 1
    assert browser.count("#waterfall .ar-lane") >= 13
    assert browser.count("#waterfall .ar-wait") == 1
    sections = browser.evaluate(
        "[...document.querySelectorAll('[data-call] .ar-tokens i')].map(part => part.title)"
    )
    assert len(sections) >= 5
    assert all(" tokens" in title for title in sections)
    assert '"thinking"' in browser.text("[data-call]")
    picture(browser, tmp_path, "heartbeat")


def test_the_pages_beside_a_heartbeat_are_one_click_away(scene: Scene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/heartbeats/heartbeat/{scene.heartbeats[1].id}/change/")
    browser.click("a[rel=prev]")
    assert str(scene.heartbeats[0].id) in browser.address
    browser.click("a[rel=next]")
    browser.click("a[rel=next]")
    assert str(scene.heartbeats[2].id) in browser.address


def test_a_click_pauses_and_another_resumes(scene: Scene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/agents/agent/{scene.agent.id}/change/")
    browser.click(".ar-acts form:has(input[value=pause]) button")
    assert "The agent is paused." in browser.text()
    browser.click(".ar-acts form:has(input[value=resume]) button")
    assert "The agent is resumed." in browser.text()


def consolidate_conversation(agent: Agent) -> tuple[Memory, Episode, Cluster]:
    """Create the rows that maintenance derives from a conversation: episode, neighborhood, cluster, concepts, relations."""
    with tenant_transaction(agent.tenant_id):
        memories = list(Memory.objects.filter(agent=agent, session="quay").order_by("position"))
        Episode.objects.filter(agent=agent, session="quay").delete()
        episode = EpisodeFactory(
            agent=agent,
            session="quay",
            size=len(memories),
            started_at=memories[0].occurred_at,
            last_at=memories[-1].occurred_at,
            summary="Ana and Ben spoke of the winter the river froze, and of two depth readings that disagree.",
        )
        for place, memory in enumerate(memories):
            Memory.objects.filter(id=memory.id).update(episode=episode, sequence=place + 1)
        others = [
            MemoryFactory(agent=agent, content=content, type=kind, role="", session="", emotional_valence=0.3)
            for content, kind in (
                ("The north quay was dredged in the spring of that year.", "semantic"),
                ("To read a depth gauge, wait for slack water, then note the tide.", "procedural"),
                ("When two readings disagree, ask first when each was taken.", "strategic"),
                ("The ferry runs again since the tenth of February.", "episodic"),
                ("Ben keeps the log of the harbour office.", "semantic"),
                ("Low tide at the quay is two hours after the bridge.", "semantic"),
                ("The harbour master asked for the readings twice.", "episodic"),
            )
        ]
        chosen = memories[2]
        near = [*(memory for memory in memories if memory != chosen), *others]
        weights = {str(memory.id): round(1.75 - 0.14 * place, 2) for place, memory in enumerate(near)}
        Upkeep.objects.update_or_create(
            memory=chosen,
            tenant_id=agent.tenant_id,
            defaults={"agent": agent, "neighbors": weights, "computed_at": datetime.now(UTC), "stale": False},
        )
        belief = BeliefFactory(agent=agent, statement="Readings taken at low tide can be trusted.")
        for target, kind, relation in (
            (others[2], "memory", "instance_of"),
            (memories[1], "memory", "contradicts"),
            (belief, "belief", "contradicts"),
        ):
            EdgeFactory(
                agent=agent,
                source_id=chosen.id,
                target_id=target.id,
                target_kind=kind,
                relation=relation,
                weight=0.8,
            )
        cluster = ClusterFactory(
            agent=agent,
            name="quay, tide, reading",
            keywords=["quay", "tide", "reading", "depth", "ferry"],
            size=9,
        )
        for place, shown_memory in enumerate([chosen, *near][:9]):
            ClusterMemberFactory(cluster=cluster, memory=shown_memory, strength=round(0.95 - place * 0.05, 2))
        winter = ClusterFactory(agent=agent, name="winter, ice, ferry")
        ClusterRelationFactory(source=winter, target=cluster, relation="evolves")
        water = ConceptFactory(agent=agent, name="water")
        tide = ConceptFactory(agent=agent, name="tide", parent=water, ancestors=[str(water.id)])
        for concept in (water, tide):
            MemoryConceptFactory(concept=concept, memory=chosen)
    return chosen, episode, cluster


def test_the_page_of_a_memory_shows_related_rows(scene: Scene, tmp_path: Path) -> None:
    browser = scene.browser
    memory, episode, cluster = consolidate_conversation(scene.agent)
    browser.open(f"{scene.url}/memories/memory/{memory.id}/change/")
    assert browser.text("#remembered") == memory.content
    assert browser.count("#neighborhood [data-neighbor]") == 10
    assert browser.count("#episode li") == 4
    for part, words in (
        ("#relations", "Readings taken at low tide can be trusted."),
        ("#clusters", "quay, tide, reading"),
        ("#weight", "Importance"),
    ):
        assert words in browser.text(part), part
    picture(browser, tmp_path, "memory")
    browser.click("#episode header a")
    assert str(episode.id) in browser.address
    assert browser.text("#summary") == episode.summary
    assert browser.count("#members [data-member]") == 4
    picture(browser, tmp_path, "episode")
    browser.open(f"{scene.url}/memories/cluster/{cluster.id}/change/")
    assert browser.count("#members [data-member]") == 9
    assert "winter, ice, ferry" in browser.text("#related")
    picture(browser, tmp_path, "cluster")
    browser.open(f"{scene.url}/agents/agent/{scene.agent.id}/change/")
    assert "quay, tide, reading" in browser.text("#memory")
    picture(browser, tmp_path, "agent-memory")


def test_lists_and_dark_pages_fit_the_screen(scene: Scene, tmp_path: Path) -> None:
    browser = scene.browser
    for page in (
        "agents/agent",
        "heartbeats/heartbeat",
        "memories/memory",
        "memories/episode",
        "goals/goal",
        "audit/auditevent",
    ):
        browser.open(f"{scene.url}/{page}/")
        picture(browser, tmp_path, page.replace("/", "-"))
    browser.evaluate("document.documentElement.classList.add('dark')")
    picture(browser, tmp_path, "dark")


def test_another_tenant_is_one_click_away(scene: Scene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/")
    assert "Acme" in browser.text(".ar-tenant summary")
    browser.evaluate("document.querySelector('.ar-tenant').open = true")
    browser.click(".ar-tenant .ar-menu form:nth-of-type(2) button")
    assert "Globex" in browser.text(".ar-tenant summary")
    assert "Viewer" in browser.text(".ar-tenant summary")
    assert "There are no agents yet" in browser.text()
