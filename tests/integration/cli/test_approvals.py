"""`arbor approval` and `arbor agent trust`."""

from __future__ import annotations

from typing import Any

import pytest

from apps.agents.models import Agent
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from tests.factories.approvals import PARAMS, ActionApprovalFactory
from tests.integration.cli.conftest import Arbor

PUBLIC = "arbor://actions/execute/reach_out_public"


@pytest.fixture
def request_id(vega: str, one_tenant: str) -> str:
    """Return the id of Vega's request for approval."""
    with tenant_transaction(tenant_by_slug(one_tenant).id):
        return str(ActionApprovalFactory(agent=Agent.objects.get(name=vega)).id)


def test_a_request_is_listed_shown_and_approved(arbor: Arbor, vega: str, request_id: str) -> None:
    (listed,) = arbor("approval", "list", "--agent", vega, "--json").json["approvals"]
    assert (listed["id"], listed["agent"], listed["params"]) == (request_id, vega, PARAMS)
    assert "The reef is charted." in arbor("approval", "show", request_id[-8:]).out

    approved = arbor("approval", "approve", request_id, "--reason", "fine", "--always", "--json").json
    assert (approved["status"], approved["reason"]) == ("approved", "fine")
    (rule,) = arbor("agent", "trust", "show", vega, "--json").json["rules"]
    assert rule == {"prefix": PUBLIC, "mode": "allow"}
    assert "Nothing waits" in arbor("approval", "list").out
    assert len(arbor("approval", "list", "--all", "--json").json["approvals"]) == 1
    repeated = arbor("approval", "approve", request_id)
    assert (repeated.code, "approved already" in repeated.err) == (1, True)


def test_a_request_is_found_in_its_own_tenant(
    arbor: Arbor, vega: str, request_id: str, two_tenants: tuple[str, str]
) -> None:
    (listed,) = arbor("approval", "list", "--agent", vega, "--json").json["approvals"]
    assert listed["id"] == arbor("approval", "show", request_id, "--json").json["id"]
    assert arbor("approval", "approve", request_id[-8:], "--json").json["tenant"] == "acme"


def test_a_request_is_denied(arbor: Arbor, request_id: str) -> None:
    denied = arbor("approval", "deny", request_id, "--reason", "not before Monday", "--json").json
    assert (denied["status"], denied["reason"]) == ("denied", "not before Monday")
    assert arbor("approval", "show", "00000000").code == 1


def test_a_request_shows_earlier_decisions(arbor: Arbor, vega: str, one_tenant: str, request_id: str) -> None:
    arbor("approval", "deny", request_id, "--reason", "not before Monday")
    with tenant_transaction(tenant_by_slug(one_tenant).id):
        later = ActionApprovalFactory(agent=Agent.objects.get(name=vega), body_hash="f" * 64)
    (precedent,) = arbor("approval", "show", str(later.id), "--json").json["precedents"]
    assert (precedent["id"], precedent["approved"]) == (request_id, False)
    shown = arbor("approval", "show", str(later.id)).out
    assert "Earlier decisions" in shown
    assert "not before Monday" in shown


def test_rules_that_no_action_meets_yet_are_shown(arbor: Arbor, vega: str) -> None:
    arbor("approval", "rule", "set", "arbor://actions/execute/mcp.builds", "block")
    shown = arbor("agent", "trust", "set", vega, "arbor://actions/execute/mcp.tickets", "ask").out
    assert [part in shown for part in ("mcp.tickets", "mcp.builds")] == [True, True]


def test_trust_is_set_and_shown(arbor: Arbor, vega: str) -> None:
    def mode_of(shown: dict[str, Any]) -> tuple[str, str]:
        (entry,) = [entry for entry in shown["actions"] if entry["action"] == "reach_out_public"]
        return entry["mode"], entry["source"]

    assert mode_of(arbor("agent", "trust", "show", vega, "--json").json) == ("allow", "preset")
    assert mode_of(arbor("agent", "trust", "preset", vega, "balanced", "--json").json) == ("ask", "preset")
    arbor("approval", "rule", "set", PUBLIC, "block")
    assert mode_of(arbor("agent", "trust", "show", vega, "--json").json) == ("block", "rule")
    assert mode_of(arbor("agent", "trust", "set", vega, PUBLIC, "auto", "--json").json) == ("auto", "rule")
    assert mode_of(arbor("agent", "trust", "clear", vega, PUBLIC, "--json").json) == ("block", "rule")
    assert arbor("approval", "rule", "list", "--json").json["rules"] == [{"prefix": PUBLIC, "mode": "block"}]
    assert arbor("approval", "rule", "clear", PUBLIC, "--json").json["rules"] == []
    assert "balanced" in arbor("agent", "trust", "show", vega).out
    too_much = arbor("agent", "trust", "set", vega, "arbor://shell/exec", "allow")
    assert (too_much.code, "never above ask" in too_much.err) == (1, True)
