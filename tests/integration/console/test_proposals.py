"""Decisions about proposals, in place and in bulk, by people with the right to approve; each is audited."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from django.test import Client
from django.urls import reverse

from apps.audit.models import AuditEvent
from apps.selves.models import Preference, Proposal
from apps.selves.services.decisions import MAX_DECIDED
from apps.tenants.scope import tenant_transaction
from arbor.ids import uuid7
from arbor.selves.proposals import MAX_DEFERRALS, ProposalStatus
from tests.factories.selves import ProposalFactory
from tests.support.console import World, page_of

LIST = "admin:selves_proposal_changelist"


@pytest.fixture
def pending(world: World) -> list[Proposal]:
    with tenant_transaction(world.tenant.id):
        return [
            ProposalFactory(agent=world.agent, kind="fact", change={}, content=content, status="pending")
            for content in (
                "The quay is dredged in spring.",
                "The ferry runs on Sundays.",
                "Ben plays chess.",
            )
        ]


def select(client: Client, action: str, ids: list[Any], **data: str) -> str:
    posted = {"action": action, "_selected_action": [str(row_id) for row_id in ids], **data}
    return str(client.post(reverse(LIST), posted, follow=True).content.decode())


def decide(client: Client, **data: Any) -> Any:
    return client.post(reverse("admin:proposal-decide"), data, follow=True)


def statuses(world: World, proposals: list[Proposal]) -> list[str]:
    with tenant_transaction(world.tenant.id):
        rows = dict(Proposal.objects.values_list("id", "status"))
    return [rows[proposal.id] for proposal in proposals]


def test_the_list_decides_selected_proposals(operator: Client, world: World, pending: list[Proposal]) -> None:
    first, second, third = pending
    text = select(operator, "reject_selected", [first.id, second.id], reason="Not  so.")
    assert "2 proposals rejected." in text
    assert "1 proposal deferred." in select(operator, "defer_selected", [third.id])
    assert statuses(world, pending) == ["rejected", "rejected", "pending"]
    with tenant_transaction(world.tenant.id):
        rejected = Proposal.objects.get(id=first.id)
        assert (rejected.reason, rejected.decided_by) == ("Not so.", "user:operator-person")
        assert Proposal.objects.get(id=third.id).deferrals == third.deferrals + 1
        messages = list(AuditEvent.objects.order_by("-id").values_list("message", flat=True)[:3])
    assert [message.split(" the proposal")[0] for message in messages] == ["deferred", "rejected", "rejected"]


def test_a_refused_decision_leaves_the_others(
    operator: Client, world: World, pending: list[Proposal]
) -> None:
    with tenant_transaction(world.tenant.id):
        Proposal.objects.filter(id=pending[0].id).update(status=ProposalStatus.REJECTED)
    text = select(operator, "accept_selected", [proposal.id for proposal in pending])
    assert "2 proposals accepted." in text
    assert "1 not accepted" in text
    assert statuses(world, pending) == ["rejected", "accepted", "accepted"]


def test_an_accepted_proposal_changes_the_self(operator: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        proposal = ProposalFactory(
            agent=world.agent,
            kind="preference",
            change={"key": "tone", "value": "brief"},
            content="Be brief.",
            status="pending",
        )
    decide(operator, one=f"accept:{proposal.id}")
    assert statuses(world, [proposal]) == ["accepted"]
    with tenant_transaction(world.tenant.id):
        assert Preference.objects.get(agent=world.agent, key="tone").value == "brief"


def test_a_proposals_page_decides_it(operator: Client, world: World, pending: list[Proposal]) -> None:
    page = page_of(pending[0])
    text = operator.get(page).content.decode()
    assert f'value="accept:{pending[0].id}"' in text
    response = decide(operator, one=f"accept:{pending[0].id}", next=page, reason="It is so.")
    assert response.redirect_chain[-1][0] == page
    text = response.content.decode()
    assert "1 proposal accepted." in text
    assert 'id="decision"' not in text


def test_the_agents_page_decides_its_proposals(
    operator: Client, viewer: Client, world: World, pending: list[Proposal]
) -> None:
    text = operator.get(world.agent_page).content.decode()
    for proposal in pending:
        assert f'data-proposal="{proposal.id}"' in text
    decide(operator, proposal=[str(proposal.id) for proposal in pending[:2]], decision="accept")
    assert statuses(world, pending) == ["accepted", "accepted", "pending"]
    text = viewer.get(world.agent_page).content.decode()
    assert "Ben plays chess." in text
    assert "Accept chosen" not in text


def test_viewers_decide_nothing(viewer: Client, world: World, pending: list[Proposal]) -> None:
    assert "accept_selected" not in viewer.get(reverse(LIST)).content.decode()
    select(viewer, "accept_selected", [pending[0].id])
    assert decide(viewer, one=f"accept:{pending[0].id}").status_code == 403
    assert "It waits for a decision of the agent" in viewer.get(page_of(pending[0])).content.decode()
    assert statuses(world, pending) == ["pending"] * 3


def test_a_proposal_of_another_tenant_is_not_decided(
    operator: Client, world: World, other_world: World
) -> None:
    with tenant_transaction(other_world.tenant.id):
        foreign = ProposalFactory(agent=other_world.agent, status="pending")
    text = decide(operator, one=f"reject:{foreign.id}").content.decode()
    assert "1 not rejected" in text
    assert statuses(other_world, [foreign]) == ["pending"]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        ({"decision": "accept"}, "choose at least one proposal"),
        ({"decision": "accept", "proposal": ["nonsense"]}, f"1 to {MAX_DECIDED} proposals"),
        ({"one": f"accept:{UUID(int=7)}"}, "1 not accepted"),
        ({"one": f"accept:{UUID(int=7)}", "reason": "x" * 501}, "at most 500 characters"),
    ],
)
def test_an_invalid_decision_is_refused(
    operator: Client, world: World, data: dict[str, Any], words: str
) -> None:
    assert words in decide(operator, **data).content.decode()


def test_an_unknown_decision_is_not_found(operator: Client, world: World) -> None:
    assert decide(operator, one=f"frame:{uuid7()}").status_code == 404


def test_a_form_does_not_lead_to_another_site(
    operator: Client, world: World, pending: list[Proposal]
) -> None:
    data = {"one": f"defer:{pending[0].id}", "next": "https://example.org/"}
    response = operator.post(reverse("admin:proposal-decide"), data)
    assert response["Location"] == reverse(LIST)


def test_the_last_deferral_expires_a_proposal(
    operator: Client, world: World, pending: list[Proposal]
) -> None:
    with tenant_transaction(world.tenant.id):
        Proposal.objects.filter(id=pending[0].id).update(deferrals=MAX_DEFERRALS - 1)
    decide(operator, one=f"defer:{pending[0].id}")
    assert statuses(world, pending[:1]) == ["expired"]
