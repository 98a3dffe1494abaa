"""`arbor agent run` and `arbor agent trace`: with a fleet, and without one."""

from __future__ import annotations

import queue
from collections.abc import Iterable, Iterator
from datetime import timedelta
from uuid import UUID

import pytest
from django.utils import timezone

from apps import queues
from apps.audit.models import AuditEvent
from apps.heartbeats.models import Heartbeat
from apps.heartbeats.services.calls.calls import execute_call
from apps.heartbeats.services.inline import fleet_is_live, run_heartbeat_now
from apps.heartbeats.services.legs.runner import advance_heartbeat
from apps.queues import Task, TaskMessage
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import tenant_by_slug
from arbor.errors import TransitionIllegal
from tests.factories.heartbeats import ProcessFactory
from tests.integration.cli.conftest import Arbor
from tests.support.threads import in_own_connection


def report_workers(*queues: str, minutes_ago: int = 0) -> None:
    for queue_name in queues:
        seen_at = timezone.now() - timedelta(minutes=minutes_ago)
        ProcessFactory(name=f"host:{queue_name}", queues=queue_name, seen_at=seen_at)


def run_worker(messages: queue.SimpleQueue[TaskMessage | None]) -> None:
    while (message := messages.get()) is not None:
        arguments = message.arguments
        if message.task is Task.ADVANCE:
            advance_heartbeat(
                agent_id=UUID(arguments["agent_id"]),
                tenant_id=message.tenant_id,
                epoch=arguments["epoch"],
            )
        else:
            execute_call(call_id=UUID(arguments["call_id"]), tenant_id=message.tenant_id)


@pytest.fixture
def fleet(database: None, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Run a fleet of one thread, whose broker is a queue in memory."""
    report_workers("heartbeat", "llm,embedding")
    messages: queue.SimpleQueue[TaskMessage | None] = queue.SimpleQueue()

    def put(published: Iterable[TaskMessage]) -> None:
        for message in published:
            messages.put(message)

    monkeypatch.setattr(queues, "publish_batched", put)
    worker = in_own_connection(lambda: run_worker(messages))
    yield
    messages.put(None)
    worker.join(60)


def test_a_heartbeat_runs_in_this_process_without_a_fleet(arbor: Arbor, active_vega: str) -> None:
    ran = arbor("agent", "run", active_vega, "--json")
    assert ran.code == 0, ran.err
    assert "no workers" in ran.err
    trace = ran.json
    assert (trace["status"], trace["number"], trace["trigger"]) == ("done", 1, "operator")
    assert trace["language_model"] is False
    assert trace["energy_start"] == 20
    assert trace["energy_end"] == 20 - sum(action["cost"] for action in trace["actions"])
    assert [step["sequence"] for step in trace["steps"]] == list(range(1, len(trace["steps"]) + 1))
    assert {"observe", "process", "act", "record"} <= {step["node"] for step in trace["steps"]}
    assert [call["status"] for call in trace["calls"]] == ["complete"]
    assert trace["round_trips"] == 1
    assert trace["tier"] in ("strategic", "standard", "reflex")
    sizes = {section["name"]: section["tokens"] for section in trace["calls"][0]["sections"]}
    assert sizes["world_rules"] > 100
    assert sizes["goals"] > 10
    assert trace["narrative"]


def test_the_trace_shows_prompt_steps_actions_and_narrative(arbor: Arbor, active_vega: str) -> None:
    arbor("agent", "tell", active_vega, "What is there by the river?")
    text = arbor("agent", "run", active_vega).out
    for part in (
        "Vega, heartbeat 1: done",
        "conversation · standard thinking · energy 20 →",
        "prompt of about ",
        "world rules ",
        "reflex: no language model",
        "Steps",
        "observe",
        "Actions",
        "verdict",
        "Narrative",
    ):
        assert part in text


def test_past_heartbeats_are_shown_by_number(arbor: Arbor, active_vega: str) -> None:
    first, second = (arbor("agent", "run", active_vega, "--json").json for _ in range(2))
    assert arbor("agent", "trace", active_vega, "--json").json == second
    assert arbor("agent", "trace", active_vega, "--heartbeat", "1", "--json").json == first
    assert "Vega, heartbeat 2: done" in arbor("agent", "trace", active_vega).out
    ran = arbor("agent", "trace", active_vega, "--heartbeat", "7")
    assert (ran.code, "has no heartbeat 7; its heartbeats have the numbers 1 to 2" in ran.err) == (1, True)


def test_a_missing_trace_names_the_command_that_runs_a_heartbeat(arbor: Arbor, active_vega: str) -> None:
    ran = arbor("agent", "trace", active_vega)
    assert (ran.code, "arbor agent run Vega" in ran.err) == (1, True)


def test_a_failed_heartbeat_gives_its_reason_and_exit_code(arbor: Arbor, one_tenant: str) -> None:
    arbor("agent", "create", "Rigel", "--template", "Scout", "--model", "openai/gpt-none", "--start")
    ran = arbor("agent", "run", "Rigel", "--json")
    assert ran.code == 1
    assert ran.json["status"] == "failed"
    assert "OPENAI_API_KEY" in ran.json["reason"]
    assert ran.json["actions"] == []
    assert "failed" in arbor("agent", "trace", "Rigel").out
    assert "last failure" in arbor("agent", "show", "Rigel").out


def test_a_paused_agent_refuses_to_run(arbor: Arbor, active_vega: str) -> None:
    arbor("agent", "pause", active_vega)
    ran = arbor("agent", "run", active_vega)
    assert (ran.code, "start or resume it first" in ran.err) == (1, True)


def test_the_audit_log_names_the_person_who_ran_an_agent(arbor: Arbor, active_vega: str) -> None:
    arbor("agent", "run", active_vega)
    with tenant_transaction(tenant_by_slug("acme").id):
        event = AuditEvent.objects.latest("id")
    assert event.message == "asked for a heartbeat now"
    assert event.actor.startswith("cli:")


def test_a_fleet_is_live_when_both_kinds_of_worker_reported_lately(database: None) -> None:
    assert not fleet_is_live()
    report_workers("heartbeat")
    assert not fleet_is_live()
    report_workers("llm,embedding", minutes_ago=1)
    assert not fleet_is_live()
    report_workers("llm")
    assert fleet_is_live()


def test_a_fleet_runs_the_heartbeat_and_each_step_is_printed_once(
    arbor: Arbor, active_vega: str, fleet: None
) -> None:
    ran = arbor("agent", "run", active_vega)
    assert ran.code == 0, ran.err
    assert "no workers" not in ran.err
    assert ran.out.count("observe") == 1
    assert "Vega, heartbeat 1: done" in ran.out


def test_a_heartbeat_runs_in_this_process_on_request(arbor: Arbor, active_vega: str, fleet: None) -> None:
    ran = arbor("agent", "run", active_vega, "--here", "--json")
    assert ran.json["status"] == "done"
    assert "this process" in ran.err


def test_the_wait_for_a_fleet_that_does_not_answer_ends(
    arbor: Arbor, active_vega: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    report_workers("heartbeat", "llm")
    monkeypatch.setattr(queues, "publish_batched", lambda messages: None)
    ran = arbor("agent", "run", active_vega, "--timeout", "1")
    assert ran.code == 1
    assert "waiting for a worker" in ran.err
    assert "arbor doctor" in ran.err


def test_a_heartbeat_inside_a_transaction_is_refused(arbor: Arbor, active_vega: str) -> None:
    tenant = tenant_by_slug("acme")
    agent_id = UUID(arbor("agent", "show", active_vega, "--json").json["id"])
    with tenant_transaction(tenant.id), pytest.raises(RuntimeError, match="outside any transaction"):
        run_heartbeat_now(agent_id=agent_id, tenant_id=tenant.id)
    run_heartbeat_now(agent_id=agent_id, tenant_id=tenant.id)
    with tenant_transaction(tenant.id):
        assert Heartbeat.objects.count() == 1


def test_a_stopped_agent_refuses_to_run(arbor: Arbor, active_vega: str) -> None:
    tenant = tenant_by_slug("acme")
    agent_id = UUID(arbor("agent", "stop", active_vega, "--json").json["id"])
    with pytest.raises(TransitionIllegal):
        run_heartbeat_now(agent_id=agent_id, tenant_id=tenant.id)
    with tenant_transaction(tenant.id):
        assert not Heartbeat.objects.exists()
