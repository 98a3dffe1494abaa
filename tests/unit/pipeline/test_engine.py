"""Walking a graph: phases, suspension, failure, bounds, and the checkpoint that survives all of it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

import pytest

from arbor.clock import FrozenClock
from arbor.errors import CheckpointInvalid, PipelineInvalid
from arbor.pipeline.engine import (
    Checkpoint,
    Context,
    NodeResult,
    Outcome,
    Phase,
    Progress,
    ProgressStatus,
    StepRecord,
    Suspension,
    advance,
    begin,
)
from arbor.pipeline.graph import heartbeat_text, load_graph

CLOCK = FrozenClock(datetime(2026, 1, 5, 9, 0, tzinfo=UTC))


@dataclass
class Does:
    """A handler that runs a function."""

    work: Callable[[Context], NodeResult] = lambda _: NodeResult()
    phase: Phase = Phase.INSIDE


@dataclass
class Asks:
    """A handler that suspends, then stores what came."""

    phase: Phase = Phase.INSIDE
    came: list[dict[str, Any]] = field(default_factory=list)

    def run(self, context: Context) -> NodeResult:
        return NodeResult(suspend=Suspension(kind="think", payload={"about": context.get("topic", "")}))

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        self.came.append(result)
        return NodeResult(
            outcome=Outcome(result.get("outcome", "success")), updates={"reply": result["text"]}
        )


class Step(Does):
    def run(self, context: Context) -> NodeResult:
        return self.work(context)


def says(outcome: Outcome = Outcome.SUCCESS, **updates: Any) -> Step:
    return Step(lambda _: NodeResult(outcome=outcome, updates=updates, changed=tuple(updates)))


def counts(name: str, outcome: Outcome) -> Step:
    return Step(lambda context: NodeResult(outcome=outcome, updates={name: context.get(name, 0) + 1}))


HEAD = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; lost [shape=Msquare, outcome=failure]; "


def walk(body: str, handlers: dict[str, Any], *, phase: Phase = Phase.INSIDE, **context: Any) -> Progress:
    graph = load_graph(f"{HEAD}{body} }}", handlers=handlers)
    return advance(graph, begin(graph, context), handlers, phase=phase, clock=CLOCK)


def nodes_of(progress: Progress) -> list[str]:
    return [step.node for step in progress.steps]


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


def test_a_branch_chooses_by_the_outcome_before_it_and_the_context() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; start -> a -> choice;"
        'choice -> done [condition="outcome=partial && context.mode=x"]; choice -> lost'
    )

    assert walk(body, {"a": says(Outcome.PARTIAL, mode="x")}).exit == "done"
    assert walk(body, {"a": says(Outcome.PARTIAL, mode="y")}).exit == "lost"
    assert walk(body, {"a": says(Outcome.SUCCESS, mode="x")}).exit == "lost"


@pytest.mark.parametrize("outcome", [Outcome.FAILURE, Outcome.RETRY])
def test_a_failure_follows_its_fail_edge_before_any_retry_target(outcome: Outcome) -> None:
    progress = walk(
        'a [type=a, retry_target=b]; b [type=b]; start -> a -> done; b -> done; a -> lost [condition="outcome!=success"]',
        {"a": says(outcome), "b": says()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a"])


def test_a_failure_without_a_fail_edge_goes_to_the_retry_target() -> None:
    progress = walk(
        "a [type=a, retry_target=b, fallback_retry_target=c]; b [type=b]; c [type=c];"
        "start -> a -> done; b -> lost; c -> done",
        {"a": says(Outcome.FAILURE), "b": says(), "c": says()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])


def test_the_fallback_is_taken_when_the_retry_target_is_worn_out() -> None:
    progress = walk(
        "a [type=a, retry_target=a, fallback_retry_target=c, max_visits=3]; c [type=c];"
        "start -> a -> done; c -> lost",
        {"a": counts("tries", Outcome.FAILURE), "c": says()},
    )

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "a", "a", "c"])


def test_a_failure_with_nowhere_to_go_ends_the_walk_as_a_failure() -> None:
    progress = walk("a [type=a]; start -> a -> done; start -> lost [weight=-1]", {"a": says(Outcome.FAILURE)})

    assert (progress.status, progress.outcome, progress.exit) == (
        ProgressStatus.FINISHED,
        Outcome.FAILURE,
        "",
    )
    assert progress.fault == "nothing leads on from node a after failure"


@pytest.mark.parametrize(
    "body",
    [
        "a [type=a]; start -> a; a -> a; a -> done [weight=-1]; a -> lost [weight=-2]",
        "a [type=a]; b [shape=diamond]; c [shape=diamond]; start -> a -> b -> c; c -> b [weight=2]; c -> done; c -> lost",
    ],
)
def test_a_walk_that_goes_round_in_circles_ends_as_a_failure(body: str) -> None:
    progress = walk(body, {"a": counts("x", Outcome.SUCCESS)})

    assert progress.outcome is Outcome.FAILURE
    assert "was visited 12 times, its limit" in progress.fault


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


HEARTBEAT_HANDLERS = set(re.findall(r'type="(\w+)"', heartbeat_text()))


def replies(*outcomes: Outcome, mode: str = "reflection") -> tuple[Progress, list[str]]:
    """Walk the default heartbeat with a model whose replies read as told."""
    wanted = list(outcomes)

    def parse(context: Context) -> NodeResult:
        outcome = wanted.pop(0)
        invalid = context.get("invalid_replies", 0) + (outcome is Outcome.RETRY)
        return NodeResult(outcome=outcome, updates={"invalid_replies": invalid})

    handlers: dict[str, Any] = {name: says() for name in HEARTBEAT_HANDLERS}
    handlers |= {"think": Asks(), "parse": Step(parse)}
    handlers["select_mode"] = says(mode=mode)
    handlers["focus"] = handlers["embed"] = Step(lambda _: NodeResult(), Phase.OUTSIDE)
    graph = load_graph(heartbeat_text(), handlers=handlers)
    checkpoint, phase, ran, result = begin(graph, {}), Phase.INSIDE, list[str](), None
    while True:
        progress = advance(graph, checkpoint, handlers, phase=phase, resume_with=result, clock=CLOCK)
        checkpoint, result = progress.checkpoint, None
        ran += [step.node for step in progress.steps if not step.suspended]
        if progress.status is ProgressStatus.FINISHED:
            return progress, ran
        if progress.status is ProgressStatus.CROSSING:
            phase = Phase.OUTSIDE if phase is Phase.INSIDE else Phase.INSIDE
        else:
            result = {"text": "{}"}


ASKED = ["llm_reflect", "process"]


@pytest.mark.parametrize(
    ("outcomes", "exit_node", "ran"),
    [
        ([Outcome.SUCCESS], "done", [*ASKED, "record"]),
        ([Outcome.RETRY, Outcome.SUCCESS], "done", [*ASKED * 2, "record"]),
        ([Outcome.RETRY, Outcome.RETRY, Outcome.SUCCESS], "done", [*ASKED * 3, "record"]),
        ([Outcome.RETRY] * 3, "failed", [*ASKED * 3, "nop"]),
    ],
)
def test_the_default_heartbeat_asks_again_twice_and_then_does_nothing(
    outcomes: list[Outcome], exit_node: str, ran: list[str]
) -> None:
    progress, walked = replies(*outcomes)

    seen = [node for node in walked if node in {*ASKED, "record", "nop"}]
    assert (progress.exit, seen) == (exit_node, ran)


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
    _, walked = replies(Outcome.RETRY, Outcome.SUCCESS, mode=mode)

    assert [each for each in walked if each.startswith("llm_")] == [node, node]


@pytest.mark.parametrize(
    ("exit_outcome", "ended"),
    [("success", Outcome.SUCCESS), ("failure", Outcome.FAILURE), ("skipped", Outcome.SKIPPED)],
)
def test_an_exit_says_how_the_walk_ended(exit_outcome: str, ended: Outcome) -> None:
    progress = walk(
        f"a [type=a]; out [shape=Msquare, outcome={exit_outcome}]; start -> a -> out;"
        "start -> done [weight=-1]; start -> lost [weight=-2]",
        {"a": says()},
    )

    assert (progress.outcome, progress.exit) == (ended, "out")


def test_a_step_may_prefer_an_edge_also_through_a_branch() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; b [type=b]; c [type=b]; start -> a -> choice;"
        "choice -> b [label=left, weight=5]; choice -> c [label=right]; b -> done; c -> lost"
    )
    handlers = {"b": says(), "a": Step(lambda _: NodeResult(preferred="right"))}

    assert nodes_of(walk(body, handlers)) == ["a", "c"]
    assert nodes_of(walk(body, handlers | {"a": says()})) == ["a", "b"]


def test_a_branch_after_a_failure_that_was_answered_takes_its_plain_edges() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; b [type=b]; start -> a -> done;"
        'a -> choice [condition="outcome=failure"]; choice -> b; b -> lost'
    )

    progress = walk(body, {"a": says(Outcome.FAILURE), "b": says()})

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])


def test_a_branch_after_a_failure_that_nothing_answers_leads_nowhere() -> None:
    body = (
        "a [type=a]; choice [shape=diamond]; start -> choice; choice -> a; a -> done; a -> lost [weight=-1]"
    )

    assert walk(body, {"a": says(Outcome.FAILURE)}).fault == "nothing leads on from node a after failure"


def test_a_retry_target_may_be_a_branch() -> None:
    body = (
        "a [type=a, retry_target=choice]; b [type=b]; choice [shape=diamond];"
        "start -> a -> done; choice -> b; b -> lost"
    )

    progress = walk(body, {"a": says(Outcome.FAILURE), "b": says()})

    assert (progress.exit, nodes_of(progress)) == ("lost", ["a", "b"])
