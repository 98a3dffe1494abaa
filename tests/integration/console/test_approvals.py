"""The page of a request for approval."""

from __future__ import annotations

from datetime import timedelta

from django.test import Client
from django.urls import reverse
from django.utils import timezone

from apps.console.alarms import alarms_of
from apps.console.pages.fleet import read_fleet
from apps.fleet.lifecycle import pause_agent
from apps.tenants.scope import tenant_transaction
from arbor.authority.approvals import APPROVAL_LIFETIME
from tests.factories.approvals import ActionApprovalFactory
from tests.factories.rows import minutes_ago
from tests.support.console import World


def test_a_request_shows_earlier_decisions(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        pending = ActionApprovalFactory(agent=world.agent, body_hash="f" * 64)
    address = reverse("admin:authority_actionapproval_change", args=[pending.id])
    assert "Nobody has decided about a request like this one." in operator.get(address).content.decode()

    with tenant_transaction(world.tenant.id):
        ActionApprovalFactory(
            agent=world.agent, status="denied", reason="not <b>before</b> Monday", decided_at=minutes_ago(3)
        )
    text = operator.get(address).content.decode()
    assert "denied reach_out_public “The reef is charted.”: not &lt;b&gt;before&lt;/b&gt; Monday" in text


def test_an_approval_for_a_paused_agent_waits_for_its_heartbeat(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        pending = ActionApprovalFactory(agent=world.agent, body_hash="d" * 64)
        pause_agent(agent_id=world.agent.id, actor="cli:ann")
    payload = {"one": f"approve:{pending.id}"}
    text = operator.post(reverse("admin:approval-decide"), payload, follow=True).content.decode()
    assert "due now" not in text
    assert f"{world.agent.name} is paused" in text


def test_a_page_says_what_an_open_request_waits_for(viewer: Client, operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        approved = ActionApprovalFactory(agent=world.agent, status="approved", body_hash="e" * 64)
        late = ActionApprovalFactory(agent=world.agent, body_hash="f" * 64, expires_at=minutes_ago(3))
    address = reverse("admin:authority_actionapproval_change", args=[approved.id])
    text = viewer.get(address).content.decode()
    assert "It waits for the decision of an operator." not in text
    assert "It is approved, and not executed yet." in text
    address = reverse("admin:authority_actionapproval_change", args=[late.id])
    text = operator.get(address).content.decode()
    assert "Approve once" not in text
    assert "It has expired" in text


def test_an_alarm_counts_requests_that_expired_undecided(operator: Client, world: World) -> None:
    now = timezone.now()
    late = now - APPROVAL_LIFETIME - timedelta(hours=1)
    early = late - timedelta(days=1)
    with tenant_transaction(world.tenant.id):
        undecided = ActionApprovalFactory(agent=world.agent, status="expired", asked_at=late)
        ActionApprovalFactory(agent=world.agent, status="expired", asked_at=early)
        ActionApprovalFactory(agent=world.agent, status="expired", asked_at=late, decided_at=late)
        alarms = alarms_of(read_fleet(), now=now)
    alarm = next(alarm for alarm in alarms if "approval" in alarm.title)
    assert alarm.title == "1 request for approval expired without a decision"
    listed = operator.get(alarm.address).context["cl"].result_list
    assert undecided.pk in {row.pk for row in listed}
