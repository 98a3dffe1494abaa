"""The pages of skills: the list, the editor, and the choice of an agent."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.console.pages.skills import OUTLINE
from apps.knowledge.models import AgentSkill, GlobalSkill, Skill
from apps.knowledge.services import skills
from apps.knowledge.services.active_skills import active_skills
from apps.knowledge.services.skills import add_skill
from apps.tenants.scope import OPS, tenant_transaction
from tests.integration.skills.conftest import skill_text
from tests.support.console import World
from tests.support.console_crawls import HOSTILE

EDITOR, LIST = "admin:skill-edit", "admin:skills"


@pytest.fixture(autouse=True)
def _no_skills(world: World) -> None:
    with tenant_transaction(world.tenant.id):
        AgentSkill.objects.all().delete()
        Skill.objects.all().delete()


def post(client: Client, text: str, act: str = "check", name: str = "") -> Any:
    posted = {"text": text.replace("\n", "\r\n"), "act": act, "name": name}
    return client.post(reverse(EDITOR), posted, follow=True)


def skill_names(world: World) -> list[str]:
    with tenant_transaction(world.tenant.id):
        return list(Skill.objects.values_list("name", flat=True))


def test_an_empty_list_offers_a_viewer_no_new_skill(viewer: Client, world: World) -> None:
    page = viewer.get(reverse(LIST)).content.decode()
    assert "No skill yet" in page
    assert "New skill" not in page


def test_a_fault_is_shown_with_its_line(operator: Client, world: World) -> None:
    page = post(operator, OUTLINE.replace("description:", "descriptoin:"), "save").content.decode()
    assert 'data-line="3"' in page
    assert "3 │ descriptoin: What the skill is for" in page
    assert skill_names(world) == []


def test_a_skill_is_added_replaced_and_deleted(
    operator: Client, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert "my-skill 1.0 is valid" in post(operator, OUTLINE).content.decode()
    assert "Saved the skill my-skill" in post(operator, OUTLINE, "save").content.decode()
    changed = OUTLINE.replace('"1.0"', '"1.1"')
    assert "has a skill" in post(operator, changed, "save").content.decode()
    saved = post(operator, changed, "save", "my-skill").content.decode()
    assert "Saved the skill my-skill" in saved
    assert saved.count("ar-mono") == 2
    with monkeypatch.context() as patch:
        patch.setattr(skills, "VERSIONS_SHOWN", 1)
        assert "The latest 1 of 2." in post(operator, changed, "check", "my-skill").content.decode()
    assert "my-skill" in operator.get(reverse(LIST)).content.decode()
    assert "Deleted the skill my-skill" in post(operator, "", "delete", "my-skill").content.decode()
    assert skill_names(world) == []


def test_an_operator_chooses_the_skills_of_an_agent(operator: Client, viewer: Client, world: World) -> None:
    address = reverse("admin:agent-skills", args=[world.agent.id])
    assert "No skill to choose from" in operator.get(address).content.decode()
    with tenant_transaction(world.tenant.id):
        for name in ("lamps", "ropes"):
            add_skill(text=skill_text(name), actor="user:nora")
    page = operator.post(address, {"skill": ["ropes", "", "lamps"]}, follow=True).content.decode()
    assert "follows ropes, lamps from its next prompt on" in page
    with tenant_transaction(world.tenant.id):
        assert [skill.name for skill in active_skills(world.agent.id)] == ["ropes", "lamps"]
    repeated = operator.post(address, {"skill": ["ropes", "ropes"]}, follow=True).content.decode()
    assert "is named twice" in repeated
    assert viewer.post(address, {"skill": ["lamps"]}).status_code == 403
    assert "Delete" in operator.get(reverse(EDITOR), {"name": "ropes"}).content.decode()
    refused = post(operator, "", "delete", "ropes").content.decode()
    assert "in use by" in refused


@pytest.mark.parametrize("text", ["", HOSTILE, "---\n", "---\nname: [\n---\n", "x" * 100_001, "a\0b"])
def test_any_invalid_text_is_answered_with_its_faults(operator: Client, world: World, text: str) -> None:
    response = post(operator, text, "save")
    assert response.status_code == 200
    assert 'id="faults"' in response.content.decode()
    assert HOSTILE not in response.content.decode()


def test_an_unknown_skill_is_not_found(operator: Client, world: World) -> None:
    assert operator.get(reverse(EDITOR), {"name": "nobody"}).status_code == 404


def test_the_page_warns_of_an_earlier_version_in_use(viewer: Client, world: World) -> None:
    skill = GlobalSkill.objects.using(OPS).create(name="tides", digest="1" * 64, tokens=30_000)
    with tenant_transaction(world.tenant.id):
        AgentSkill.objects.create(
            tenant_id=world.tenant.id,
            agent=world.agent,
            position=1,
            name=skill.name,
            retained_digest="0" * 64,
        )
    page = viewer.get(reverse("admin:agent-skills", args=[world.agent.id])).content.decode()
    assert "follows an earlier version of tides" in page
