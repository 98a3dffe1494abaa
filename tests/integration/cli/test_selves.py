"""`arbor self belief` and `arbor self identity`: who an agent is and what it believes, from the command line."""

from __future__ import annotations

import pytest

from apps.audit.models import AuditEvent
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from config.cli.output import short
from tests.integration.cli.conftest import Arbor


@pytest.fixture
def vega(arbor: Arbor, one_tenant: str) -> str:
    assert arbor("agent", "create", "Vega", "--template", "Scout").code == 0
    return "Vega"


def test_a_new_agent_believes_what_its_template_values(arbor: Arbor, vega: str) -> None:
    beliefs = arbor("self", "belief", "list", vega, "--json").json["beliefs"]
    assert {belief["category"] for belief in beliefs} == {"values"}
    assert any(belief["statement"].startswith("accuracy, because") for belief in beliefs)
    aspects = arbor("self", "identity", "list", vega, "--json").json["aspects"]
    assert {aspect["kind"] for aspect in aspects} == {"self_concept", "purpose", "emotional_baseline"}


def test_a_belief_is_held_revised_and_dropped(arbor: Arbor, vega: str) -> None:
    belief = arbor("self", "belief", "add", vega, "[b]Ice[/b] holds.", "--about", "world", "--json").json
    assert (belief["confidence"], belief["status"]) == (0.7, "held")
    assert "[b]Ice[/b] holds." in arbor("self", "belief", "list", vega).out
    assert arbor("self", "belief", "add", vega, "[b]Ice[/b] holds.").code == 1
    revised = arbor(
        "self", "belief", "revise", vega, short(belief["id"]), "--confidence", "0.2", "--status", "questioned"
    )
    assert "is questioned, 20% sure" in revised.out
    assert arbor("self", "belief", "drop", vega, belief["id"], "--reason", "it broke").code == 0
    assert "holds." not in arbor("self", "belief", "list", vega).out
    assert "holds." in arbor("self", "belief", "list", vega, "--all").out
    with tenant_transaction(tenant_by_slug("acme").id):
        actors = AuditEvent.objects.filter(message__contains="Ice").values_list("actor", flat=True)
        assert len(actors) == 3
        assert all(actor.startswith("cli:") for actor in actors)


def test_an_aspect_is_taken_and_dropped(arbor: Arbor, vega: str) -> None:
    aspect = arbor(
        "self", "identity", "add", vega, "I finish what I begin.", "--kind", "agency", "--json"
    ).json
    assert "I finish what I begin." in arbor("self", "identity", "list", vega).out
    assert arbor("self", "identity", "drop", vega, short(aspect["id"])).code == 0
    assert "I finish what I begin." not in arbor("self", "identity", "list", vega).out


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (("self", "belief", "add", "Vega", " "), 1),
        (("self", "belief", "add", "Vega", "x", "--confidence", "7"), 2),
        (("self", "belief", "revise", "Vega", "12345678"), 2),
        (("self", "belief", "drop", "Vega", "12345678"), 1),
        (("self", "belief", "list", "Nobody"), 1),
        (("self", "identity", "add", "Vega", "x", "--kind", "dream"), 2),
        (("self", "identity", "drop", "Vega", "12345678"), 1),
    ],
)
def test_a_wrong_command_is_refused_with_its_exit_code(
    arbor: Arbor, vega: str, arguments: tuple[str, ...], code: int
) -> None:
    assert arbor(*arguments).code == code
