"""Workflows over the API: defined and run by operators, visible to their tenant only."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from apps.agents.models import Agent
from apps.tenants.models import Tenant
from apps.workflows.services import definitions
from apps.workflows.services.legs import advance_run
from arbor.ids import uuid7
from arbor.workflows.definition import read_definition
from tests.factories.workflows import SOURCE
from tests.support.api import Caller


@pytest.fixture
def workflow(operator: Caller, vega: dict[str, Any]) -> dict[str, Any]:
    """Return a workflow with a step that a person approves."""
    made: dict[str, Any] = operator.post("/workflows", {"name": "review", "source": SOURCE}).json()
    return made


def test_an_operator_defines_a_workflow(
    operator: Caller, viewer: Caller, outsider: Caller, workflow: dict[str, Any]
) -> None:
    address = f"/workflows/{workflow['id']}"
    assert operator.post("/workflows", {"name": "review", "source": SOURCE}).status_code == 409
    assert viewer.post("/workflows", {"name": "other", "source": SOURCE}).status_code == 403
    assert viewer.get("/workflows").json()["items"] == [workflow]
    assert outsider.get("/workflows").json()["items"] == []
    assert outsider.get(address).status_code == 404
    shown = viewer.get(address).json()
    assert (shown["number"], shown["inputs"], shown["steps"]) == (1, ["topic"], ["ask"])
    schedule = {"cron": "0 7 * * *", "zone": "Europe/Berlin", "input": {"topic": "rain"}}
    changed = operator.send("patch", address, {"schedule": schedule, "source": f"{SOURCE} "}).json()
    assert (changed["version"], changed["zone"]) == (2, "Europe/Berlin")
    assert viewer.get(address, version=1).json()["source"] == SOURCE
    later = operator.send("patch", address, {"schedule": {"cron": "0 8 * * *"}}).json()
    kept = (later["cron"], later["zone"], later["scheduled_input"])
    assert kept == ("0 8 * * *", "Europe/Berlin", {"topic": "rain"})
    lacking = operator.send("patch", address, {"schedule": {"input": {}}})
    assert (lacking.status_code, "the input needs topic" in lacking.json()["detail"]) == (422, True)
    assert operator.send("patch", address, {"agent": "nobody"}).status_code == 404
    faulty = operator.post("/workflows/check", {"source": "digraph g { a [type=magic] }"})
    assert (faulty.status_code, "no handler" in faulty.json()["detail"]) == (422, True)
    ask = 'type=approval, question="Publish {input.topic}?"'
    vain = SOURCE.replace(ask, 'type=delegate, task=go, backoff="1m"')
    refused = operator.post("/workflows/check", {"source": vain})
    assert (refused.status_code, "node ask: backoff is" in refused.json()["detail"]) == (422, True)
    assert viewer.post("/workflows/check", {"source": SOURCE}).json()["inputs"] == ["topic"]
    assert operator.send("delete", address).json()["id"] == workflow["id"]
    assert operator.get(address).status_code == 404


def test_a_stored_definition_is_sent_back_unchanged(
    operator: Caller, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = 'start [shape=Mdiamond]; done [shape=Msquare]; ask [type=delegate, task=go, backoff="1m"]'
    source = f"digraph w {{ {steps}; start -> ask -> done }}"
    with monkeypatch.context() as earlier:
        earlier.setattr(definitions, "read_new_definition", read_definition)
        stored = operator.post("/workflows", {"name": "review", "source": source}).json()
    address = f"/workflows/{stored['id']}"
    changed = operator.send("patch", address, {"source": source, "description": "Daily."})
    assert (changed.status_code, changed.json()["version"]) == (200, 1)
    assert operator.send("patch", address, {"source": f"{source} "}).status_code == 422


@pytest.mark.parametrize(("path", "fields"), [("/workflows", {"name": "review"}), ("/workflows/check", {})])
def test_every_step_with_a_wrong_model_is_named(operator: Caller, path: str, fields: dict[str, str]) -> None:
    steps = " ".join(
        f'{name} [type=prompt, prompt="Go.", model="opnai/{name}"];' for name in ("ask", "reply")
    )
    source = (
        f"digraph w {{ start [shape=Mdiamond]; done [shape=Msquare]; {steps} start -> ask -> reply -> done }}"
    )
    refused = operator.post(path, {**fields, "source": source})
    assert refused.status_code == 422
    for name in ("ask", "reply"):
        assert f"step {name}: a model handle begins with" in refused.json()["detail"]


def test_a_workflow_of_an_agent_destroyed_meanwhile_is_not_found(
    operator: Caller, tenant: Tenant, vega: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "find_agent", lambda _name: Agent(id=uuid7(), tenant_id=tenant.id))
    refused = operator.post("/workflows", {"name": "review", "source": SOURCE, "agent": "Vega"})
    assert (refused.status_code, refused.json()["detail"]) == (404, "there is no such agent in this tenant")


def test_a_workflow_beyond_the_limit_is_a_conflict(
    owner: Caller, workflow: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(definitions, "MAX_WORKFLOWS", 1)
    refused = owner.post("/workflows", {"name": "second", "source": SOURCE})
    assert refused.status_code == 409
    assert refused.json()["detail"] == "a tenant has at most 1 workflows; delete one first"


def test_an_operator_runs_a_workflow(
    operator: Caller, viewer: Caller, outsider: Caller, tenant: Tenant, workflow: dict[str, Any]
) -> None:
    start = f"/workflows/{workflow['id']}/runs"
    assert viewer.post(start, {"values": {"topic": "rain"}}).status_code == 403
    assert operator.post(start, {}).status_code == 422
    run = operator.post(start, {"values": {"topic": "rain"}, "key": "7"}).json()
    assert operator.post(start, {"values": {"topic": "rain"}, "key": "7"}).json()["id"] == run["id"]
    other = operator.post(start, {"values": {"topic": "x"}, "key": "7"})
    assert (other.status_code, "with another input" in other.json()["detail"]) == (422, True)
    advance_run(run_id=UUID(run["id"]), tenant_id=tenant.id)
    (step,) = viewer.get("/workflow-approvals").json()["items"]
    assert step["input"] == "Publish rain?"
    assert outsider.get("/workflow-approvals").json()["items"] == []
    assert viewer.post(f"/workflow-steps/{step['id']}/approve", {}).status_code == 403
    assert outsider.post(f"/workflow-steps/{step['id']}/approve", {}).status_code == 404
    decided = operator.post(f"/workflow-steps/{step['id']}/approve", {"reason": "fine"}).json()
    assert decided["decided_by"].startswith("token:")
    assert operator.post(f"/workflow-steps/{step['id']}/deny", {}).status_code == 409
    advance_run(run_id=UUID(run["id"]), tenant_id=tenant.id)
    shown = viewer.get(f"/workflow-runs/{run['id']}").json()
    assert (shown["run"]["status"], shown["steps"][0]["output"]) == ("succeeded", "fine")
    assert outsider.get(f"/workflow-runs/{run['id']}").status_code == 404
    assert operator.post(f"/workflow-runs/{run['id']}/cancel", {}).status_code == 409
    listed = viewer.get("/workflow-runs", workflow_id=workflow["id"], status="succeeded").json()["items"]
    assert [row["id"] for row in listed] == [run["id"]]
    other = operator.post(start, {"values": {"topic": "sun"}}).json()
    assert operator.send("delete", f"/workflows/{workflow['id']}").status_code == 409
    canceled = operator.post(f"/workflow-runs/{other['id']}/cancel", {"reason": "no"}).json()
    assert canceled["status"] == "canceled"
