"""The engine: needs, suspension, failures and checkpoints."""

from __future__ import annotations

import json
from typing import Any

import pytest

from arbor.errors import CheckpointInvalid, NotFound, PipelineInvalid
from arbor.pipeline.engine import (
    Checkpoint,
    NodeOutcome,
    NodeResult,
    Progress,
    ProgressStatus,
    StepRecord,
    Steps,
    Suspension,
    advance,
    begin,
    run_alone,
)
from arbor.pipeline.graph import load_graph
from arbor.pipeline.values import Graph
from tests.unit.pipeline.steps import (
    CLOCK,
    HEAD,
    ONE,
    Result,
    State,
    SuspendingHandler,
    needs,
    nodes_of,
    run_pipeline,
    sets,
)


def one_step_graph(step: Any) -> tuple[Graph, dict[str, Any]]:
    """Return the graph of one step, with its handlers."""
    handlers: dict[str, Any] = {"a": step}
    return load_graph(f"{HEAD}{ONE} }}", handlers=handlers), handlers


def test_steps_run_in_order_from_the_previous_state() -> None:
    progress = run_pipeline(
        "a [type=a]; b [type=b]; start -> a -> b -> done; start -> lost [weight=-1]",
        {"a": sets(x=1, y=1), "b": lambda state: NodeResult(state={**state, "x": state["x"] + 1})},
        z=0,
    )

    assert progress.status is ProgressStatus.FINISHED
    assert (progress.outcome, progress.exit, progress.fault) == (NodeOutcome.SUCCESS, "done", "")
    assert progress.checkpoint.state == {"x": 2, "y": 1, "z": 0}
    assert nodes_of(progress) == ["a", "b"]


def test_each_step_is_recorded_and_observed() -> None:
    observed: list[StepRecord] = []
    graph, handlers = one_step_graph(sets(x=1))

    progress = run_alone(advance(graph, begin(graph, {}), handlers, clock=CLOCK, observer=observed.append))

    record = progress.steps[0]
    assert tuple(observed) == progress.steps
    assert (record.sequence, record.node, record.handler) == (1, "a", "a")
    assert (record.started_at, record.outcome, record.suspended) == (CLOCK.now(), NodeOutcome.SUCCESS, False)
    assert record.changed == ("x",)
    assert record.duration_ms >= 0


def test_a_step_gets_the_answers_to_its_needs_in_order() -> None:
    answered: list[str] = []

    def answer(need: str) -> str:
        answered.append(need)
        return need.upper()

    body = "a [type=a]; b [type=b]; start -> a -> b -> done; start -> lost [weight=-1]"
    progress = run_pipeline(
        body, {"a": needs("owls", "ferries"), "b": needs("tides", name="more")}, answer=answer
    )

    assert answered == ["owls", "ferries", "tides"]
    assert progress.checkpoint.state == {"answers": ["OWLS", "FERRIES"], "more": ["TIDES"]}
    assert nodes_of(progress) == ["a", "b"]


def test_a_run_pauses_at_a_need_before_its_step_has_effects() -> None:
    observed: list[StepRecord] = []
    graph, handlers = one_step_graph(needs("owls"))
    checkpoint = begin(graph, {"x": 1})

    run = advance(graph, checkpoint, handlers, clock=CLOCK, observer=observed.append)

    assert next(run) == "owls"
    assert (observed, checkpoint.state) == ([], {"x": 1})


def test_an_answer_that_is_an_error_is_raised_in_the_step() -> None:
    def careful(state: State) -> Steps[State]:
        try:
            yield "owls"
        except NotFound as error:
            return NodeResult(state={**state, "refused": str(error)})
        raise AssertionError("it was answered")

    graph, handlers = one_step_graph(careful)
    run = advance(graph, begin(graph, {}), handlers, clock=CLOCK)
    next(run)

    with pytest.raises(StopIteration) as stopped:
        run.throw(NotFound("there are no owls"))

    assert stopped.value.value.checkpoint.state == {"refused": "there are no owls"}


def test_an_unexpected_error_as_an_answer_names_the_node() -> None:
    graph, handlers = one_step_graph(needs("owls"))
    run = advance(graph, begin(graph, {}), handlers, clock=CLOCK)
    next(run)

    with pytest.raises(NotFound) as caught:
        run.throw(NotFound("there are no owls"))

    assert caught.value.__notes__ == ["in pipeline g, node a, handler a"]


def test_a_need_without_an_answer_is_named() -> None:
    with pytest.raises(PipelineInvalid, match="no answer for the need 'owls'"):
        run_pipeline(ONE, {"a": needs("owls")})


def suspending_graph() -> tuple[Graph, dict[str, Any]]:
    """Return a graph whose second step suspends, with its handlers."""
    handlers: dict[str, Any] = {"think": SuspendingHandler(), "a": sets(topic="owls"), "b": sets(b=1)}
    text = (
        f"{HEAD} think [type=think]; a [type=a]; b [type=b]; start -> a -> think -> b -> done;"
        'think -> lost [condition="outcome=failure"] }'
    )
    return load_graph(text, handlers=handlers), handlers


def run_from(graph: Graph, checkpoint: Checkpoint[State], handlers: Any, **options: Any) -> Progress[State]:
    return run_alone(advance(graph, checkpoint, handlers, clock=CLOCK, **options))


def stored_copy(checkpoint: Checkpoint[State]) -> Checkpoint[State]:
    """Return a checkpoint as loaded by another process."""
    position, state = json.loads(json.dumps([checkpoint.position(), checkpoint.state]))
    return Checkpoint.at(position, state)


def test_a_suspended_step_stores_its_pending_request() -> None:
    graph, handlers = suspending_graph()

    progress = run_from(graph, begin(graph, {}), handlers)

    assert progress.status is ProgressStatus.SUSPENDED
    assert progress.suspension == Suspension(kind="think", payload={"about": "owls"})
    assert (progress.checkpoint.cursor, progress.checkpoint.waiting) == ("think", True)
    assert [(step.node, step.suspended) for step in progress.steps] == [("a", False), ("think", True)]


@pytest.mark.parametrize(
    ("result", "exit_node", "ran"),
    [({"text": "hoot"}, "done", ["think", "b"]), ({"text": "", "outcome": "failure"}, "lost", ["think"])],
)
def test_a_suspended_run_resumes_from_its_stored_checkpoint(
    result: dict[str, Any], exit_node: str, ran: list[str]
) -> None:
    graph, handlers = suspending_graph()
    stopped = run_from(graph, begin(graph, {}), handlers)

    progress = run_from(graph, stored_copy(stopped.checkpoint), handlers, resume_with=result)

    assert progress.exit == exit_node
    assert nodes_of(progress) == ran
    assert progress.checkpoint.state["reply"] == result["text"]
    assert not progress.checkpoint.waiting
    assert [step.sequence for step in progress.steps] == list(range(3, 3 + len(ran)))
    assert progress.checkpoint.visits["think"] == 1


def test_a_step_may_have_needs_when_it_resumes() -> None:
    class Remembers(SuspendingHandler):
        def resume(self, state: State, result: dict[str, Any]) -> Any:
            answer = yield f"about {result['text']}"
            return NodeResult(state={**state, "found": answer})

    graph, handlers = suspending_graph()
    handlers["think"] = Remembers()
    stopped = run_from(graph, begin(graph, {}), handlers)

    run = advance(graph, stopped.checkpoint, handlers, clock=CLOCK, resume_with={"text": "hoot"})
    progress = run_alone(run, answer=len)

    assert (progress.exit, progress.checkpoint.state["found"]) == ("done", len("about hoot"))


def test_a_result_is_required_exactly_when_the_run_is_suspended() -> None:
    graph, handlers = suspending_graph()
    fresh: Checkpoint[State] = begin(graph, {})
    waiting = run_from(graph, fresh, handlers).checkpoint

    with pytest.raises(CheckpointInvalid, match="waits for nothing"):
        advance(graph, fresh, handlers, resume_with={"text": "x"}, clock=CLOCK)
    with pytest.raises(CheckpointInvalid, match="waits for a result"):
        advance(graph, waiting, handlers, clock=CLOCK)


def test_a_checkpoint_of_another_graph_is_refused() -> None:
    graph, handlers = suspending_graph()

    with pytest.raises(CheckpointInvalid, match="has no node 'gone'"):
        advance(graph, Checkpoint(cursor="gone", state={}), handlers, clock=CLOCK)
    waiting: Checkpoint[State] = Checkpoint(cursor="start", state={}, waiting=True)
    with pytest.raises(CheckpointInvalid, match=r"node start .* is no step"):
        advance(graph, waiting, handlers, resume_with={"text": "x"}, clock=CLOCK)
    with pytest.raises(CheckpointInvalid, match="needs cursor, visits"):
        Checkpoint.at({"waiting": False, "steps": 0}, {})


def test_a_finished_run_runs_no_further_steps() -> None:
    graph, handlers = one_step_graph(sets())
    first = run_from(graph, begin(graph, {}), handlers)

    again = run_from(graph, first.checkpoint, handlers)

    assert (again.status, again.exit, again.steps) == (ProgressStatus.FINISHED, "done", ())


def test_the_initial_checkpoint_is_never_changed() -> None:
    graph, handlers = suspending_graph()
    checkpoint: Checkpoint[State] = begin(graph, {})

    first, second = (run_from(graph, checkpoint, handlers) for _ in range(2))

    assert (checkpoint.visits, checkpoint.steps, checkpoint.state) == ({}, 0, {})
    assert first.checkpoint == second.checkpoint


@pytest.mark.parametrize("at_once", [True, False])
def test_a_handlers_error_passes_through_with_the_nodes_name(at_once: bool) -> None:
    def fail(_: State) -> Result:
        raise RuntimeError("the disk is full")

    def fail_later(_: State) -> Steps[State]:
        yield "owls"
        raise RuntimeError("the disk is full")

    with pytest.raises(RuntimeError, match="the disk is full") as caught:
        run_pipeline(
            ONE.replace("type=a", "type=boom"), {"boom": fail if at_once else fail_later}, answer=len
        )

    assert caught.value.__notes__ == ["in pipeline g, node a, handler boom"]


def test_a_handler_that_suspends_must_be_able_to_resume() -> None:
    def suspends(state: State) -> Result:
        return NodeResult(state=state, suspend=Suspension(kind="think", payload={}))

    with pytest.raises(PipelineInvalid, match="handler 'a' suspends, so it needs a `resume`"):
        run_pipeline(ONE, {"a": suspends})


def test_a_missing_handler_is_named() -> None:
    graph = load_graph(f"{HEAD}{ONE} }}", handlers={"a"})

    with pytest.raises(PipelineInvalid, match="no handler is called 'a'"):
        run_from(graph, begin(graph, {}), {})
