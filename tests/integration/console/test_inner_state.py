"""The panel of an agent's page that shows how it feels and what moves it."""

from __future__ import annotations

from datetime import UTC, datetime

from django.test import Client
from django.urls import reverse

from apps.agents.models import AgentState
from apps.tenants.scope import tenant_transaction
from tests.factories.selves import ProposalFactory
from tests.support.console import World, page_of
from tests.support.console_crawls import ViewerCrawl


def test_an_agents_page_shows_its_mood_and_its_drives(viewer: Client, world: World) -> None:
    at = datetime.now(UTC).isoformat()
    with tenant_transaction(world.tenant.id):
        AgentState.objects.filter(agent_id=world.agent.id).update(
            mood={"valence": 0.9, "arousal": 0.9, "at": at},
            drives={"states": {"curiosity": {"level": 0.9, "at": at, "building": True}}},
        )
    text = viewer.get(reverse("admin:agents_agent_change", args=[world.agent.id])).content.decode()
    assert "very good and stirred up" in text
    assert 'data-drive="curiosity"' in text
    assert "curiosity <strong>presses</strong>" in text
    assert "rest <strong>" not in text


def test_every_part_of_a_self_has_a_page_and_a_list(seen_by_viewer: ViewerCrawl) -> None:
    pages = [page for page in seen_by_viewer.pages if "/selves/" in page.address]
    names = ("belief", "beliefevidence", "boundary", "experience", "identityaspect", "peermodel")
    for name in (*names, "preference", "proposal", "selfchange"):
        assert any(f"/selves/{name}/" in page.address for page in pages), name
    for page in pages:
        assert page.status == 200, page.address


def test_a_proposal_that_waits_says_how_a_person_decides_it(viewer: Client, world: World) -> None:
    with tenant_transaction(world.tenant.id):
        waits = ProposalFactory(agent=world.agent)
        decided = ProposalFactory(agent=world.agent, status="accepted")
    assert (
        f"{waits.id}"
        in viewer.get(page_of(waits)).content.decode().partition("arbor self proposal accept")[2]
    )
    assert "decided already" in viewer.get(page_of(decided)).content.decode()
