"""The default graph: retries and modes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from arbor.pipeline.engine import (
    Checkpoint,
    NodeOutcome,
    NodeResult,
    Progress,
    ProgressStatus,
    advance,
    begin,
    run_alone,
)
from arbor.pipeline.graph import heartbeat_text, load_graph
from tests.unit.pipeline.steps import CLOCK, Result, State, SuspendingHandler, needs, sets

HEARTBEAT_HANDLERS = set(re.findall(r'type="(\w+)"', heartbeat_text()))


def run_with_replies(*outcomes: NodeOutcome, mode: str = "reflection") -> tuple[Progress[State], list[str]]:
    """Run the default graph with replies of these outcomes; return its end and the nodes that ran."""
    wanted = list(outcomes)

    def parse(state: State) -> Result:
        outcome = wanted.pop(0)
        invalid = state.get("invalid_replies", 0) + (outcome is NodeOutcome.RETRY)
        return NodeResult(state={**state, "invalid_replies": invalid}, outcome=outcome)

    handlers: dict[str, Any] = {name: sets() for name in HEARTBEAT_HANDLERS}
    handlers |= {"think": SuspendingHandler(), "parse": parse, "select_mode": sets(mode=mode)}
    handlers["focus"] = handlers["embed"] = needs("vectors")
    graph = load_graph(heartbeat_text(), handlers=handlers)
    checkpoint: Checkpoint[State] = begin(graph, {})
    ran, result = list[str](), None
    while True:
        run = advance(graph, checkpoint, handlers, resume_with=result, clock=CLOCK)
        progress = run_alone(run, answer=str)
        checkpoint, result = progress.checkpoint, {"text": "{}"}
        ran += [step.node for step in progress.steps if not step.suspended]
        if progress.status is ProgressStatus.FINISHED:
            return progress, ran


MODEL_NODES = ["llm_reflect", "process"]


@pytest.mark.parametrize(
    ("outcomes", "exit_node", "ran"),
    [
        ([NodeOutcome.SUCCESS], "done", [*MODEL_NODES, "record"]),
        ([NodeOutcome.RETRY, NodeOutcome.SUCCESS], "done", [*MODEL_NODES * 2, "record"]),
        ([NodeOutcome.RETRY, NodeOutcome.RETRY, NodeOutcome.SUCCESS], "done", [*MODEL_NODES * 3, "record"]),
        ([NodeOutcome.RETRY] * 3, "failed", [*MODEL_NODES * 3, "nop"]),
    ],
)
def test_the_default_heartbeat_retries_twice_and_then_ends_as_nop(
    outcomes: list[NodeOutcome], exit_node: str, ran: list[str]
) -> None:
    progress, nodes = run_with_replies(*outcomes)

    visited = [node for node in nodes if node in {*MODEL_NODES, "record", "nop"}]
    assert (progress.exit, visited) == (exit_node, ran)


@pytest.mark.parametrize(
    ("mode", "node"),
    [
        ("conversation", "llm_converse"),
        ("goal_pursuit", "llm_goal"),
        ("plan_execution", "llm_plan"),
        ("reflection", "llm_reflect"),
        ("consolidation", "llm_consolidate"),
    ],
)
def test_each_mode_has_its_own_call_of_a_model(mode: str, node: str) -> None:
    _, nodes = run_with_replies(NodeOutcome.RETRY, NodeOutcome.SUCCESS, mode=mode)

    assert [node for node in nodes if node.startswith("llm_")] == [node, node]


def test_labels_use_the_words_of_the_glossary() -> None:
    labels = re.findall(r'label="([^"]+)"', heartbeat_text())
    assert len(labels) > 20
    assert [
        label for label in labels if re.search(r"\b(beats?|tend|hold|told|held)\b", label, re.IGNORECASE)
    ] == []
