"""The page of a request for approval."""

from __future__ import annotations

from django.test import Client
from django.urls import reverse

from apps.tenants.scope import tenant_transaction
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
