"""The operator's pages in a real browser: dark, light and on a phone, with the keyboard, within the content security policy.

`KEEP_PICTURES=FOLDER pytest tests/acceptance/test_operator_pages.py` stores the screenshots there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.fleet.administration import limit_tenant
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.memories.models import Memory
from apps.memories.services.store.remember import remember
from apps.queues import captured
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import add_member, create_tenant
from arbor.memory.values import NewMemory
from tests.acceptance.browser import Browser, needs_chromium
from tests.acceptance.console_server import sign_in
from tests.factories.heartbeats import LedgerEntryFactory, ProcessFactory
from tests.factories.memories import ConceptFactory, EdgeFactory
from tests.factories.selves import ProposalFactory
from tests.factories.users import UserFactory
from tests.support.database import DatabaseCleaner

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600), needs_chromium]
PHONE = 390
TEXTS = (
    "The river froze in January, and the ferry stopped for nine days.",
    "One depth reading says 11.2 metres, the other 9.8.",
    "The harbour master asked for the readings twice.",
    "Ben keeps the log of the harbour office.",
    "Low tide at the quay is two hours after the bridge.",
)


@dataclass(frozen=True, kw_only=True)
class OperatorScene:
    """A tenant with something on each page, and a browser signed in as its owner, who runs the installation."""

    browser: Browser
    url: str
    agent: Agent
    memory: Memory

    @property
    def pages(self) -> dict[str, str]:
        """The operator's pages by name."""
        agent = self.agent.id
        return {
            "recall": f"memories/recall/?agent={agent}&q=ferry+on+the+river",
            "graph": f"memories/graph/?agent={agent}&node={self.memory.id}",
            "proposals": "selves/proposal/",
            "agent": f"agents/agent/{agent}/change/",
            "usage": f"calls/usage/?agent={agent}",
            "operations": "operations/",
            "template": "agents/template/edit/?name=Monitor",
            "members": "tenants/membership/",
            "first": "",
        }


def populate() -> tuple[Agent, Memory]:
    """Create a tenant with something on each page; return its agent, and a memory with relations."""
    seed_builtin_templates()
    tenant = create_tenant(slug="acme", name="Acme")
    limit_tenant(slug="acme", limits={"daily_tokens": 50_000, "daily_usd": Decimal(5)}, actor="cli:tests")
    user = UserFactory(username="ann", is_superuser=True)
    add_member(tenant=tenant, user=user, role=Role.OWNER)
    with captured(), tenant_transaction(tenant.id):
        agent = create_agent(name="Vega", template_name="Researcher", actor="user:ann")
        start_agent(agent_id=agent.id, actor="user:ann")
    now = datetime.now(UTC)
    conversation = [
        NewMemory(content=text, occurred_at=now - timedelta(hours=place)) for place, text in enumerate(TEXTS)
    ]
    remember(tenant_id=tenant.id, agent_id=agent.id, memories=conversation)
    with tenant_transaction(tenant.id):
        memories = list(Memory.objects.filter(content__in=TEXTS).order_by("id"))
        for other in memories[1:]:
            EdgeFactory(
                agent=agent, source_id=memories[0].id, target_id=other.id, relation="causes", weight=0.7
            )
        concept = ConceptFactory(agent=agent, name="tide")
        EdgeFactory(
            agent=agent,
            source_id=memories[0].id,
            target_id=concept.id,
            target_kind="concept",
            relation="instance_of",
        )
        for place, content in enumerate(("The quay is dredged in spring.", "The ferry runs on Sundays.")):
            ProposalFactory(
                agent=agent,
                kind="fact",
                change={},
                content=content,
                status="pending",
                confidence=0.6 + place / 10,
            )
        for model, cost in (("gpt-5", "0.02"), ("gpt-5-mini", "0.001"), ("gpt-5-mini", "0.002")):
            LedgerEntryFactory(call__heartbeat__agent=agent, model=model, cost_usd=Decimal(cost))
    ProcessFactory(kind="worker", queues="heartbeat,llm,embedding", name="host:1")
    ProcessFactory(
        kind="worker", queues="outbox", name="host:2", seen_at=timezone.now() - timedelta(minutes=3)
    )
    return agent, memories[0]


@pytest.fixture(scope="module")
def scene(address: str, emptier: DatabaseCleaner, django_db_blocker: Any) -> Iterator[OperatorScene]:
    with django_db_blocker.unblock(), Browser() as browser:
        agent, memory = populate()
        sign_in(browser, address)
        yield OperatorScene(browser=browser, url=f"{address}/admin", agent=agent, memory=memory)
        emptier.empty()


#: The names of fields and buttons without a label, as assistive software would read them.
UNNAMED = """
[...document.querySelectorAll('#content input:not([type=hidden]), #content select, #content textarea, #content button, #content a')]
  .filter(field => field.offsetParent !== null && !field.labels?.length && !field.getAttribute('aria-label')
    && !field.title && !field.innerText.trim() && !field.querySelector('title'))
  .map(field => field.outerHTML.slice(0, 120))
"""


def test_pages_fit_the_screen_in_light_and_dark(scene: OperatorScene, tmp_path: Path) -> None:
    browser = scene.browser
    for name, page in scene.pages.items():
        browser.open(f"{scene.url}/{page}")
        browser.evaluate("document.documentElement.classList.remove('dark')")
        browser.picture(tmp_path, f"operator-{name}")
        assert browser.evaluate(UNNAMED) == [], name
        browser.evaluate("document.documentElement.classList.add('dark')")
        browser.picture(tmp_path, f"operator-{name}-dark")


def test_a_node_of_the_graph_is_chosen_by_a_click(scene: OperatorScene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/{scene.pages['graph']}")
    before = browser.text("#center")
    browser.evaluate(
        "document.querySelector('#graph a[data-node]').dispatchEvent(new MouseEvent('click', {bubbles: true, cancelable: true}))"
    )
    browser.wait_for(f"document.querySelector('#center')?.innerText !== {before!r}")
    browser.wait_until_loaded()
    assert browser.text("#center") != before


def test_a_person_finds_a_memory_and_decides_a_proposal(scene: OperatorScene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/memories/recall/?agent={scene.agent.id}")
    browser.fill("#recall input[name=q]", "Who keeps the log?")
    browser.click("#recall button[type=submit]")
    assert "Ben keeps the log" in browser.text("#recalled li")
    assert browser.count("#recalled li:first-child rect") >= 2
    browser.open(f"{scene.url}/agents/agent/{scene.agent.id}/change/")
    browser.click("#proposals button[value^=accept]")
    assert "1 proposal accepted." in browser.text()


def test_a_person_sees_a_dead_worker_and_pauses_everything(scene: OperatorScene) -> None:
    browser = scene.browser
    browser.open(f"{scene.url}/operations/")
    assert "silent" in browser.text("tr[data-process='host:2']")
    assert "outbox" in browser.text("#unserved")
    browser.fill("#pause-all input[name=confirm]", "acme")
    browser.click("#pause-all button[value=pause-all]")
    assert "1 agent paused." in browser.text()
    browser.fill("#pause-all input[name=confirm]", "acme")
    browser.click("#pause-all button[value=resume-all]")
    assert "1 agent resumed." in browser.text()


def test_pages_fit_a_phone(scene: OperatorScene, address: str, tmp_path: Path) -> None:
    with Browser(width=PHONE, height=844) as browser:
        sign_in(browser, address)
        for name, page in scene.pages.items():
            browser.open(f"{scene.url}/{page}")
            browser.picture(tmp_path, f"operator-{name}-phone")
