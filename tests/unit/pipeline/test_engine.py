"""Walking a graph: phases, suspension, failure, bounds, and the checkpoint that survives all of it."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arbor.errors import CheckpointInvalid, PipelineInvalid
from arbor.pipeline.engine import (
    Checkpoint,
    Context,
    NodeResult,
    Outcome,
    Phase,
    ProgressStatus,
    StepRecord,
    Suspension,
    advance,
    begin,
)
from arbor.pipeline.graph import load_graph
from tests.unit.pipeline.steps import CLOCK, HEAD, Asks, Step, nodes_of, says, walk


def test_a_walk_runs_its_steps_in_order_and_merges_their_updates() -> None:
    progress = walk(
        "a [type=a]; b [type=b]; start -> a -> b -> done; start -> lost [weight=-1]",
        {"a": says(x=1, y=1), "b": Step(lambda c: NodeResult(updates={"x": c["x"] + 1}))},
        z=0,
    )

    assert progress.status is ProgressStatus.FINISHED
    assert (progress.outcome, progress.exit, progress.fault) == (Outcome.SUCCESS, "done", "")
    assert progress.checkpoint.context == {"x": 2, "y": 1, "z": 0}
    assert nodes_of(progress) == ["a", "b"]


def test_each_step_leaves_a_record_and_the_observer_sees_it() -> None:
    seen: list[StepRecord] = []
    handlers: dict[str, Any] = {"a": says(x=1)}
    graph = load_graph(
        f"{HEAD} a [type=a]; start -> a -> done; start -> lost [weight=-1] }}", handlers=handlers
    )

    progress = advance(
        graph, begin(graph, {}), handlers, phase=Phase.INSIDE, clock=CLOCK, observer=seen.append
    )

    record = progress.steps[0]
    assert tuple(seen) == progress.steps
    assert (record.seq, record.node, record.handler, record.phase) == (1, "a", "a", Phase.INSIDE)
    assert (record.started_at, record.outcome, record.suspended) == (CLOCK.now(), Outcome.SUCCESS, False)
    assert record.changed == ("x",)
    assert record.duration_ms >= 0


def test_the_walk_stops_where_the_other_phase_begins_and_goes_on_from_there() -> None:
    handlers: dict[str, Any] = {
        "a": says(a=1),
        "b": Step(lambda _: NodeResult(), Phase.OUTSIDE),
        "c": says(c=1),
    }
    graph = load_graph(
        f"{HEAD} a [type=a]; b [type=b]; c [type=c]; start -> a -> b -> c -> done; start -> lost [weight=-1] }}",
        handlers=handlers,
    )
    phases, stops = [Phase.INSIDE, Phase.OUTSIDE, Phase.INSIDE], []
    checkpoint = begin(graph, {})
    for phase in phases:
        progress = advance(graph, checkpoint, handlers, phase=phase, clock=CLOCK)
        checkpoint = Checkpoint.from_json(json.loads(json.dumps(progress.checkpoint.to_json())))
        stops.append((progress.status, nodes_of(progress), checkpoint.cursor))

    assert stops == [
        (ProgressStatus.CROSSING, ["a"], "b"),
        (ProgressStatus.CROSSING, ["b"], "c"),
        (ProgressStatus.FINISHED, ["c"], "done"),
    ]


def test_a_walk_that_begins_in_the_wrong_phase_does_nothing() -> None:
    progress = walk(
        "a [type=a]; start -> a -> done; start -> lost [weight=-1]", {"a": says(x=1)}, phase=Phase.OUTSIDE
    )

    assert (progress.status, progress.steps) == (ProgressStatus.CROSSING, ())
    assert progress.checkpoint.context == {}


def asking() -> tuple[Any, dict[str, Any]]:
    handlers: dict[str, Any] = {"think": Asks(), "a": says(topic="owls"), "b": says(b=1)}
    text = (
        f"{HEAD} think [type=think]; a [type=a]; b [type=b]; start -> a -> think -> b -> done;"
        'think -> lost [condition="outcome=failure"] }'
    )
    return load_graph(text, handlers=handlers), handlers


def test_a_step_that_suspends_stores_what_it_waits_for() -> None:
    graph, handlers = asking()

    progress = advance(graph, begin(graph, {}), handlers, phase=Phase.INSIDE, clock=CLOCK)

    assert progress.status is ProgressStatus.SUSPENDED
    assert progress.suspension == Suspension(kind="think", payload={"about": "owls"})
    assert (progress.checkpoint.cursor, progress.checkpoint.waiting) == ("think", True)
    assert [(step.node, step.suspended) for step in progress.steps] == [("a", False), ("think", True)]


@pytest.mark.parametrize(
    ("result", "exit_node", "ran"),
    [
        ({"text": "hoot"}, "done", ["think", "b"]),
        ({"text": "", "outcome": "failure"}, "lost", ["think"]),
    ],
)
def test_a_suspended_walk_goes_on_with_the_result_from_its_stored_checkpoint(
    result: dict[str, Any], exit_node: str, ran: list[str]
) -> None:
    graph, handlers = asking()
    stopped = advance(graph, begin(graph, {}), handlers, phase=Phase.INSIDE, clock=CLOCK)
    stored = json.dumps(stopped.checkpoint.to_json())

    progress = advance(
        graph,
        Checkpoint.from_json(json.loads(stored)),
        handlers,
        phase=Phase.INSIDE,
        resume_with=result,
        clock=CLOCK,
    )

    assert progress.exit == exit_node
    assert nodes_of(progress) == ran
    assert progress.checkpoint.context["reply"] == result["text"]
    assert not progress.checkpoint.waiting
    assert [step.seq for step in progress.steps] == list(range(3, 3 + len(ran)))
    assert progress.checkpoint.visits["think"] == 1


def test_a_result_that_arrives_in_the_wrong_phase_is_kept_for_the_right_one() -> None:
    graph, handlers = asking()
    stopped = advance(graph, begin(graph, {}), handlers, phase=Phase.INSIDE, clock=CLOCK)

    crossing = advance(
        graph, stopped.checkpoint, handlers, phase=Phase.OUTSIDE, resume_with={"text": "x"}, clock=CLOCK
    )

    assert crossing.status is ProgressStatus.CROSSING
    assert crossing.checkpoint == stopped.checkpoint
    assert handlers["think"].came == []


def test_a_result_is_wanted_exactly_when_the_walk_waits() -> None:
    graph, handlers = asking()
    fresh = begin(graph, {})
    waiting = advance(graph, fresh, handlers, phase=Phase.INSIDE, clock=CLOCK).checkpoint

    with pytest.raises(CheckpointInvalid, match="waits for nothing"):
        advance(graph, fresh, handlers, phase=Phase.INSIDE, resume_with={"text": "x"}, clock=CLOCK)
    with pytest.raises(CheckpointInvalid, match="waits for a result"):
        advance(graph, waiting, handlers, phase=Phase.INSIDE, clock=CLOCK)


def test_a_checkpoint_of_another_graph_is_refused() -> None:
    graph, handlers = asking()

    with pytest.raises(CheckpointInvalid, match="has no node 'gone'"):
        advance(graph, Checkpoint(cursor="gone"), handlers, phase=Phase.INSIDE, clock=CLOCK)
    with pytest.raises(CheckpointInvalid, match="needs context, visits"):
        Checkpoint.from_json({"cursor": "a", "waiting": False, "steps": 0})


def test_a_finished_walk_stays_finished() -> None:
    handlers: dict[str, Any] = {"a": says()}
    graph = load_graph(
        f"{HEAD} a [type=a]; start -> a -> done; start -> lost [weight=-1] }}", handlers=handlers
    )
    first = advance(graph, begin(graph, {}), handlers, phase=Phase.INSIDE, clock=CLOCK)

    again = advance(graph, first.checkpoint, handlers, phase=Phase.OUTSIDE, clock=CLOCK)

    assert (again.status, again.exit, again.steps) == (ProgressStatus.FINISHED, "done", ())


def test_a_handlers_error_passes_through_with_the_nodes_name() -> None:
    def fail(_: Context) -> NodeResult:
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full") as caught:
        walk("a [type=boom]; start -> a -> done; start -> lost [weight=-1]", {"boom": Step(fail)})

    assert caught.value.__notes__ == ["in pipeline g, node a, handler boom"]


def test_a_handler_cannot_change_the_context_behind_the_engines_back() -> None:
    def cheat(context: Context) -> NodeResult:
        context["x"] = 1  # type: ignore[index]
        return NodeResult()

    with pytest.raises(TypeError, match="does not support item assignment"):
        walk("a [type=a]; start -> a -> done; start -> lost [weight=-1]", {"a": Step(cheat)})


def test_a_handler_that_suspends_must_be_able_to_resume() -> None:
    suspends = Step(lambda _: NodeResult(suspend=Suspension(kind="think", payload={})))

    with pytest.raises(PipelineInvalid, match="handler 'a' suspends, so it needs a `resume`"):
        walk("a [type=a]; start -> a -> done; start -> lost [weight=-1]", {"a": suspends})


def test_a_handler_that_is_gone_is_named() -> None:
    graph = load_graph(f"{HEAD} a [type=a]; start -> a -> done; start -> lost [weight=-1] }}", handlers={"a"})

    with pytest.raises(PipelineInvalid, match="no handler is called 'a'"):
        advance(graph, begin(graph, {}), {}, phase=Phase.INSIDE, clock=CLOCK)
