"""The editor of templates, which checks line by line, previews the system prompt, and saves."""

from __future__ import annotations

from typing import Any

import pytest
from django.test import Client
from django.urls import reverse

from apps.agents.models import Template
from apps.console.pages.template_editor import OUTLINE
from apps.tenants.scope import tenant_transaction
from tests.support.console import World
from tests.support.console_crawls import HOSTILE

EDITOR = "admin:template-edit"


def post(client: Client, text: str, act: str = "check", name: str = "") -> Any:
    posted = {"text": text.replace("\n", "\r\n"), "act": act, "name": name}
    return client.post(reverse(EDITOR), posted, follow=True)


def templates_of(world: World) -> dict[str, str]:
    with tenant_transaction(world.tenant.id):
        return dict(Template.objects.values_list("name", "source_text"))


def test_a_fault_is_shown_with_its_line(operator: Client, world: World) -> None:
    # A line separator ends a line for Python and YAML, but not in an editor.
    text = OUTLINE.replace("actions: [recall,", "actions: [fly,").replace("---\n", "---\n#\u2028#\n", 1)
    line = 1 + text[: text.index("actions: [fly,")].count("\n")
    page = post(operator, text, "save").content.decode()
    assert f'data-line="{line}"' in page
    assert "unknown action &#x27;fly&#x27;" in page
    assert f"{line} │ actions: [fly," in page
    assert "MyAgent" not in templates_of(world)


def test_a_valid_template_is_previewed_before_it_is_saved(operator: Client, world: World) -> None:
    page = post(operator, OUTLINE).content.decode()
    assert "MyAgent 1.0 is valid" in page
    assert "# Character: Ada" in page
    assert "You observe one subject with patience" in page
    assert "MyAgent" not in templates_of(world)


def test_a_template_is_added_and_replaced(operator: Client, world: World) -> None:
    assert "Saved template MyAgent 1.0" in post(operator, OUTLINE, "save").content.decode()
    assert templates_of(world)["MyAgent"] == OUTLINE
    changed = OUTLINE.replace('"1.0"', '"1.1"')
    assert "has a template" in post(operator, changed, "save").content.decode()
    assert "Saved template MyAgent 1.1" in post(operator, changed, "save", "MyAgent").content.decode()
    assert templates_of(world)["MyAgent"] == changed


def test_a_built_in_template_is_opened_as_a_copy(operator: Client, world: World, templates: None) -> None:
    response = operator.get(reverse(EDITOR), {"name": "Monitor"})
    assert response.context["page"].name == ""
    assert "You keep the watch" in response.content.decode()
    text = response.context["page"].text.replace("source: builtin", "source: user")
    assert "Saved template Monitor" in post(operator, text, "save").content.decode()
    assert "Monitor" in templates_of(world)


def test_viewers_save_no_template(viewer: Client, world: World) -> None:
    assert "Check and preview" not in viewer.get(reverse(EDITOR)).content.decode()
    assert post(viewer, OUTLINE, "save").status_code == 403


@pytest.mark.parametrize("text", ["", HOSTILE, "---\n", "---\nname: [\n---\n", "x" * 200_001, "a\0b"])
def test_any_invalid_text_is_answered_with_its_faults(operator: Client, world: World, text: str) -> None:
    response = post(operator, text, "save")
    assert response.status_code == 200
    assert 'id="faults"' in response.content.decode()
    assert HOSTILE not in response.content.decode()


def test_an_unknown_template_is_not_found(operator: Client, world: World) -> None:
    assert operator.get(reverse(EDITOR), {"name": "Nobody"}).status_code == 404
