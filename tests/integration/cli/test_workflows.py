"""`arbor workflow`."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from django.db import connections

from apps.tenants.scope import APP, tenant_transaction
from apps.tenants.services import tenant_by_slug
from apps.workflows.models import Workflow
from apps.workflows.services import definitions
from apps.workflows.services.definitions import WorkflowRequest, WorkflowSchedule
from apps.workflows.services.legs import advance_run
from arbor.contacts.standard_webhooks import new_standard_secret
from config.cli import workflows
from config.cli.contacts import hooks
from tests.factories.workflows import SOURCE
from tests.integration.cli import conftest
from tests.integration.cli.conftest import Arbor
from tests.support.threads import in_own_connection


@pytest.fixture
def file(tmp_path: Path) -> str:
    """Return the path of a definition that asks a person."""
    path = tmp_path / "review.dot"
    path.write_text(SOURCE, encoding="utf-8")
    return str(path)


def advance(run: dict[str, Any], slug: str) -> None:
    tenant_id = tenant_by_slug(slug).id
    advance_run(run_id=run["id"], tenant_id=tenant_id)


def test_a_workflow_is_found_in_its_own_tenant(
    arbor: Arbor, vega: str, file: str, two_tenants: tuple[str, str]
) -> None:
    assert arbor("workflow", "check", file, "--json").json["tenant"] is None
    assert arbor("workflow", "create", "review", file, "--agent", vega, "--json").json["tenant"] == "acme"
    run = arbor("workflow", "start", "review", "--input", "topic=rain", "--json").json
    assert arbor("workflow", "run", "show", run["id"], "--json").json["tenant"] == "acme"
    changed = arbor("workflow", "change", "review", "--disable").out
    assert "is disabled" in " ".join(changed.split())


def test_a_workflow_is_defined_shown_changed_and_deleted(
    arbor: Arbor, vega: str, file: str, tmp_path: Path
) -> None:
    assert "No workflow yet" in arbor("workflow", "list").out
    checked = arbor("workflow", "check", file, "--json").json
    assert (checked["steps"], checked["inputs"]) == (["ask"], ["topic"])
    schedule = ("--cron", "0 7 * * 1-5", "--zone", "Europe/Berlin", "--input", "topic=rain")
    about = ("--description", "Look first", "--agent", vega)
    made = arbor("workflow", "create", "review", file, *about, *schedule, "--json").json
    assert (made["version"], made["agent"], made["cron"]) == (1, vega, "0 7 * * 1-5")
    assert made["next_run_at"]
    (listed,) = arbor("workflow", "list", "--json").json["workflows"]
    assert (listed["name"], listed["scheduled_input"]) == ("review", {"topic": "rain"})

    other = tmp_path / "other.dot"
    other.write_text(SOURCE.replace("Publish", "Print"), encoding="utf-8")
    change = ("workflow", "change", "review")
    emptied = ("--description", "", "--agent", "", "--disable")
    changed = arbor(*change, "--file", str(other), *emptied, "--json").json
    assert (changed["version"], changed["agent"], changed["next_run_at"]) == (2, "", None)
    schedule = ("--cron", "0 8 * * *", "--zone", "UTC", "--input", "topic=3")
    rescheduled = arbor(*change, *schedule, "--enable", "--json").json
    assert (rescheduled["zone"], rescheduled["scheduled_input"]) == ("UTC", {"topic": 3})
    assert "Publish" in arbor("workflow", "show", "review", "--version", "1").out
    assert "Print" in arbor("workflow", "show", "review", "--json").json["source"]
    assert arbor("workflow", "delete", "review", "--json").json["name"] == "review"
    gone = arbor("workflow", "show", "review")
    assert (gone.code, "there is no workflow" in gone.err) == (1, True)


class TypedText(io.StringIO):
    """A text that a person types, for which no transaction may wait."""

    def read(self, size: int | None = -1) -> str:
        assert not connections[APP].in_atomic_block
        return super().read(size)


def test_no_transaction_waits_for_standard_input(
    arbor: Arbor, vega: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = {"description": None, "agent": None, "cron": None, "zone": None, "values": ()}
    workflows.check(file=TypedText(SOURCE), tenant_slug=None)
    workflows.create(name="review", file=TypedText(SOURCE), tenant_slug=None, **options)
    workflows.change(name="review", file=TypedText(SOURCE), enabled=None, tenant_slug=None, **options)
    arbor("contact", "hook", "create", "ops", "--agent", vega)
    hooks.rotate("ops", secret_file=TypedText(new_standard_secret()), tenant_slug=None)
    monkeypatch.setattr(conftest, "io", SimpleNamespace(StringIO=TypedText))
    for command in ("tell", "perceive"):
        assert arbor("agent", command, vega, "-", stdin="The river rises.").code == 0


def test_two_changes_of_a_schedule_at_once_are_both_made(
    arbor: Arbor, vega: str, file: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    arbor("workflow", "create", "review", file, "--agent", vega, "--cron", "0 7 * * *", "--input", "topic=a")
    tenant_id = tenant_by_slug("acme").id
    real = definitions.change_workflow

    def change_times() -> None:
        with tenant_transaction(tenant_id):
            row = definitions.find_workflow("review")
            schedule = WorkflowSchedule(cron="0 9 * * *", input={"topic": "a"})
            request = WorkflowRequest(name="", schedule=schedule)
            real(workflow_id=row.id, request=request, actor="cli:ada")

    def change_later(**named: Any) -> Workflow:
        # The other change is committed after this one has read the workflow, before it locks the row.
        in_own_connection(change_times).join(20)
        return real(**named)

    monkeypatch.setattr(definitions, "change_workflow", change_later)
    assert arbor("workflow", "change", "review", "--zone", "Europe/Berlin").code == 0
    (listed,) = arbor("workflow", "list", "--json").json["workflows"]
    assert (listed["cron"], listed["zone"]) == ("0 9 * * *", "Europe/Berlin")


def test_a_faulty_definition_names_its_faults(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.dot"
    path.write_text(SOURCE.replace("type=approval", "type=magic"), encoding="utf-8")
    checked = arbor("workflow", "check", str(path))
    assert (checked.code, "no handler is called 'magic'" in checked.err) == (1, True)


def test_a_check_names_the_step_with_a_wrong_model(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.dot"
    step = 'ask [type=prompt, prompt="Go.", model="opnai/gpt"'
    path.write_text(
        SOURCE.replace('ask [type=approval, question="Publish {input.topic}?"', step), encoding="utf-8"
    )
    checked = arbor("workflow", "check", str(path))
    assert (checked.code, "step ask: a model handle begins with" in checked.err) == (1, True)


def test_a_backoff_without_retries_is_refused(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    path = tmp_path / "wrong.dot"
    step = 'ask [type=delegate, task="Go.", backoff="1m"'
    path.write_text(
        SOURCE.replace('ask [type=approval, question="Publish {input.topic}?"', step), encoding="utf-8"
    )
    for command in (("check",), ("create", "review")):
        refused = arbor("workflow", *command, str(path))
        assert (refused.code, "node ask: backoff is the delay" in refused.err) == (1, True)


def test_a_run_is_started_decided_and_shown(arbor: Arbor, one_tenant: str, file: str) -> None:
    arbor("workflow", "create", "review", file)
    assert "No run" in arbor("workflow", "run", "list").out
    assert arbor("workflow", "start", "review", "--input", 'topic="\\ud800"').code == 1
    run = arbor("workflow", "start", "review", "--input", "topic=rain", "--key", "7", "--json").json
    assert arbor("workflow", "start", "review", "--input", "topic=rain", "--key", "7", "--json").json == run
    assert "No step waits" in arbor("workflow", "waiting").out
    advance(run, one_tenant)
    (step,) = arbor("workflow", "waiting", "--json").json["steps"]
    assert step["input"] == "Publish rain?"
    approved = arbor("workflow", "approve", step["id"][-8:], "--reason", "fine", "--json").json
    assert (approved["status"], approved["output"]) == ("answered", "fine")
    advance(run, one_tenant)
    shown = arbor("workflow", "run", "show", run["id"][-8:], "--json").json
    assert (shown["status"], shown["steps"][0]["decided_by"][:4]) == ("succeeded", "cli:")
    listed = arbor("workflow", "run", "list", "--workflow", "review", "--status", "succeeded", "--json").json[
        "runs"
    ]
    assert [row["id"] for row in listed] == [run["id"]]


def test_a_step_is_denied_and_a_run_canceled(arbor: Arbor, one_tenant: str, file: str) -> None:
    arbor("workflow", "create", "review", file)
    runs = [arbor("workflow", "start", "review", "--input", "topic=rain", "--json").json for _ in range(2)]
    for run in runs:
        advance(run, one_tenant)
    canceled = arbor("workflow", "run", "cancel", runs[0]["id"], "--reason", "wrong", "--json").json
    assert (canceled["status"], canceled["error"].endswith(": wrong")) == ("canceled", True)
    (step,) = arbor("workflow", "waiting", "--json").json["steps"]
    assert step["run_id"] == runs[1]["id"]
    assert arbor("workflow", "deny", step["id"], "--reason", "no", "--json").json["status"] == "answered"
    repeated = arbor("workflow", "deny", step["id"])
    assert (repeated.code, "cannot be decided" in repeated.err) == (1, True)


def test_an_input_without_a_value_is_refused(arbor: Arbor, one_tenant: str, file: str) -> None:
    arbor("workflow", "create", "review", file)
    refused = arbor("workflow", "start", "review", "--input", "topic")
    assert refused.code == 2
    assert "a value of the input is NAME=VALUE, got 'topic'" in " ".join(refused.err.split())
