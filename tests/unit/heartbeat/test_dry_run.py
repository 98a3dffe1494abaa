"""Dry runs of a pipeline."""

from __future__ import annotations

import json
import re

import pytest

from arbor.heartbeat.dry_run import DryRun, Script, dry_run
from arbor.pipeline.conditions import NodeOutcome
from arbor.pipeline.graph import heartbeat_text, load_graph

REST = json.dumps({"thinking": "hm", "actions": [{"action": "rest"}], "memory_notes": [], "goal_updates": []})
GRAPH = load_graph(heartbeat_text(), handlers=set(re.findall(r'type="(\w+)"', heartbeat_text())))


def run_script(script: Script) -> DryRun:
    return dry_run(GRAPH, script)


def visited(run: DryRun, *wanted: str) -> list[str]:
    """Return the visits of the wanted nodes, in order."""
    return [step.node for step in run.passed if step.node in wanted]


def test_every_step_succeeds_by_default() -> None:
    run = run_script(Script())

    assert (run.exit, run.outcome, run.fault) == ("done", NodeOutcome.SUCCESS, "")
    assert visited(run, "observe", "llm_reflect", "act", "record") == [
        "observe",
        "llm_reflect",
        "act",
        "record",
    ]
    assert "llm_goal" in run.unvisited


def test_the_mode_leads_to_its_call() -> None:
    run = run_script(Script(context={"mode": "plan_execution"}))

    assert visited(run, "llm_plan", "llm_reflect") == ["llm_plan"]


@pytest.mark.parametrize(
    ("script", "exit_node", "calls"),
    [
        (Script(outcomes={"llm_reflect": [NodeOutcome.FAILURE]}), "failed", 1),
        (Script(outcomes={"llm_reflect": [NodeOutcome.RETRY]}), "done", 2),
        (Script(replies=["no", REST]), "done", 2),
        (Script(replies=["no", "no", REST]), "done", 3),
        (Script(replies=["no", "no", "no"]), "failed", 3),
        (Script(replies=[REST, REST, REST]), "done", 3),
        # A failed further round trip does not fail the heartbeat.
        (Script(replies=[REST, "no", "no", "no"]), "done", 4),
        (
            Script(
                replies=[REST, REST], outcomes={"llm_reflect": [NodeOutcome.SUCCESS, NodeOutcome.FAILURE]}
            ),
            "done",
            2,
        ),
        (Script(replies=[REST] * 10), "done", 10),
        (Script(context={"idle": "nothing to do"}), "idle", 0),
    ],
)
def test_the_run_follows_the_script(script: Script, exit_node: str, calls: int) -> None:
    run = run_script(script)

    assert run.exit == exit_node
    assert len(visited(run, "llm_reflect")) == calls


def test_a_scripted_reply_is_parsed_with_its_dropped_items() -> None:
    reply = json.dumps({"thinking": "hm", "actions": ["rest"], "dreams": 1}) + '{"actions": []}'

    (process,) = [step for step in run_script(Script(replies=[reply])).passed if step.node == "process"]

    assert process.changed[0] == "wants rest"
    assert any("dropped dreams: unknown key" in line for line in process.changed)
    assert "dropped a further reply in the same text; one reply is read" in process.changed


def test_a_preferred_edge_is_followed() -> None:
    graph = load_graph(
        "digraph g { start [shape=Mdiamond]; a [type=x]; b [type=x]; c [type=x]; done [shape=Msquare];"
        "start -> a; a -> b [label=one]; a -> c [label=two]; b -> done; c -> done }",
        handlers={"x"},
    )

    assert [step.node for step in dry_run(graph, Script(preferred={"a": "two"})).passed] == ["a", "c"]


def test_an_endless_run_is_reported() -> None:
    graph = load_graph(
        "digraph g { start [shape=Mdiamond]; a [type=x]; done [shape=Msquare];"
        'start -> a; a -> a [condition="context.again=yes"]; a -> done }',
        handlers={"x"},
    )

    run = dry_run(graph, Script(context={"again": "yes"}))

    assert (run.exit, run.outcome) == ("", NodeOutcome.FAILURE)
    assert "its limit" in run.fault
