"""Approvals in a real browser: asked, approved and executed once; denied; expired; always allowed."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from django.conf import settings

from apps.agents.models import Agent
from apps.agents.services.templates import seed_builtin_templates
from apps.authority.models import ActionApproval
from apps.authority.services.modes import set_mode
from apps.fleet.creation import create_agent
from apps.fleet.lifecycle import start_agent
from apps.heartbeats.services.calls import calls
from apps.maintenance.services.approvals import expire_overdue_approvals
from apps.memories.models import Memory
from apps.tenants.models import Role
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import add_member, create_tenant
from arbor.authority.grants import action_resource
from arbor.authority.modes import TrustMode
from arbor.models.ports import ScriptedModel
from tests.acceptance.browser import Browser, needs_chromium
from tests.acceptance.console_server import sign_in
from tests.factories.users import UserFactory
from tests.integration.heartbeats.conftest import REST
from tests.integration.heartbeats.fleet import a_fleet
from tests.integration.heartbeats.heartbeat_runner import HeartbeatRunner, action_of, reply_of
from tests.support.database import DatabaseCleaner

pytestmark = [pytest.mark.acceptance, pytest.mark.timeout(600), needs_chromium]


@dataclass(frozen=True, kw_only=True)
class ApprovalScene:
    """An agent that has to ask before it remembers, and a browser signed in as an operator."""

    browser: Browser
    url: str
    agent: Agent
    heartbeats: HeartbeatRunner

    def ask(self, text: str) -> None:
        """Run a heartbeat that asks to remember a text, and open the request as a person does."""
        self.heartbeats.run(reply_of(actions=[action_of("remember", content=text)]))
        self.browser.open(f"{self.url}/authority/actionapproval/?status__exact=pending")
        self.browser.click("#result_list tbody th a, #result_list tbody td a")
        assert text in self.browser.text()

    def status(self) -> str:
        """Return the status of the latest request."""
        with tenant_transaction(self.agent.tenant_id):
            status: str = ActionApproval.objects.latest("asked_at").status
        return status

    def count_memories(self, text: str) -> int:
        """Return the number of memories with this text."""
        with tenant_transaction(self.agent.tenant_id):
            return Memory.objects.filter(agent_id=self.agent.id, content=text).count()


@pytest.fixture(scope="module")
def scene(address: str, emptier: DatabaseCleaner, django_db_blocker: Any) -> Iterator[ApprovalScene]:
    with (
        django_db_blocker.unblock(),
        Browser() as browser,
        a_fleet() as fleet,
        pytest.MonkeyPatch.context() as patch,
    ):
        seed_builtin_templates()
        tenant = create_tenant(slug="acme", name="Acme")
        add_member(tenant=tenant, user=UserFactory(username="ann", is_superuser=True), role=Role.OPERATOR)
        with tenant_transaction(tenant.id):
            agent = create_agent(
                name="Vega", template_name="Researcher", actor="user:ann", interval=timedelta(hours=1)
            )
            start_agent(agent_id=agent.id, actor="user:ann")
            resource = action_resource("remember")
            set_mode(agent_id=agent.id, prefix=resource, mode=TrustMode.ASK, actor="user:ann")
        fleet.messages.clear()

        def script(*lines: str) -> ScriptedModel:
            model = ScriptedModel(*lines)
            patch.setattr(calls, "model_for", lambda _handle: model)
            patch.setattr(settings, "ARBOR_DEFAULT_MODEL", model.handle)
            return model

        sign_in(browser, address)
        heartbeats = HeartbeatRunner(fleet, agent, script)
        yield ApprovalScene(browser=browser, url=f"{address}/admin", agent=agent, heartbeats=heartbeats)
        emptier.empty()


def test_an_approved_action_is_executed_once(scene: ApprovalScene) -> None:
    scene.ask("The reef is two fathoms deep.")
    assert scene.browser.violations() == []
    scene.browser.click("#decision button[value^=approve]")
    assert "executes it once" in scene.browser.text()
    assert scene.count_memories("The reef is two fathoms deep.") == 0

    scene.heartbeats.run(REST)
    scene.heartbeats.run(REST)

    assert (scene.status(), scene.count_memories("The reef is two fathoms deep.")) == ("executed", 1)


def test_a_denied_action_is_not_executed(scene: ApprovalScene) -> None:
    scene.ask("The harbour is closed.")
    scene.browser.fill("#decision input[name=reason]", "It is open.")
    scene.browser.click("#decision button[value^=deny]")
    assert "Denied." in scene.browser.text()

    assert "denied: It is open." in scene.heartbeats.run(REST)
    assert (scene.status(), scene.count_memories("The harbour is closed.")) == ("denied", 0)


def test_an_expired_request_cannot_be_approved(scene: ApprovalScene) -> None:
    scene.ask("The tide turns at six.")
    with tenant_transaction(scene.agent.tenant_id):
        latest = ActionApproval.objects.latest("asked_at")
        ActionApproval.objects.filter(id=latest.id).update(expires_at=datetime.now(UTC) - timedelta(hours=1))
    scene.browser.click("#decision button[value^=approve]")
    assert "Nothing was decided" in scene.browser.text()

    assert expire_overdue_approvals().done == 1
    scene.heartbeats.run(REST)
    assert (scene.status(), scene.count_memories("The tide turns at six.")) == ("expired", 0)


def test_an_always_allowed_action_needs_no_request(scene: ApprovalScene) -> None:
    scene.ask("Ben keeps the log.")
    scene.browser.click("#decision button[value^=always]")
    assert "From now on it is allowed without asking" in scene.browser.text()
    scene.heartbeats.run(REST)
    scene.heartbeats.run(reply_of(actions=[action_of("remember", content="Ann reads the log.")]))

    assert (scene.count_memories("Ben keeps the log."), scene.count_memories("Ann reads the log.")) == (1, 1)
