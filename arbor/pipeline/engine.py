"""The pipeline engine: runs the handlers of a graph on a state until one suspends or the graph ends.

A handler is a function of the state, or a generator that yields needs and receives their answers. A run is then a
generator too, and its driver answers the needs of several runs together. Nothing here reads or writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from arbor.clock import Clock
from arbor.errors import CheckpointInvalid, PipelineInvalid
from arbor.pipeline.conditions import choose_edge
from arbor.pipeline.outcomes import NodeOutcome
from arbor.pipeline.progress import Checkpoint, Progress, ProgressStatus, StepRecord, Suspension
from arbor.pipeline.values import Graph, PipelineNode, PipelineNodeKind

__all__ = [
    "Checkpoint",
    "Handler",
    "NodeOutcome",
    "NodeResult",
    "Progress",
    "ProgressStatus",
    "Resumable",
    "Run",
    "StepRecord",
    "Steps",
    "Suspension",
    "Work",
    "advance",
    "begin",
    "run_alone",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResult[S]:
    """The result of a node: state, outcome, pending call, lines of its trace, and the preferred label of an edge."""

    state: S
    outcome: NodeOutcome = NodeOutcome.SUCCESS
    suspend: Suspension | None = None
    changed: tuple[str, ...] = ()
    preferred: str = ""


#: The work of one node: a result, or a generator of needs that returns a result.
type Steps[S] = Generator[Any, Any, NodeResult[S]]
type Work[S] = NodeResult[S] | Steps[S]
#: A run: yields the needs of its nodes, returns its progress.
type Run[S] = Generator[Any, Any, Progress[S]]


class Handler[S](Protocol):
    """A step: a function of the state."""

    def __call__(self, state: S, /) -> Work[S]:
        """Return the result, or a generator of needs that returns it."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A handler that may suspend."""

    def resume(self, state: Any, result: Any, /) -> Work[Any]:
        """Continue with the result of the call."""
        ...


def begin[S](graph: Graph, state: S) -> Checkpoint[S]:
    """Return the checkpoint of a new run."""
    return Checkpoint(cursor=graph.start, state=state)


def advance[S](
    graph: Graph,
    checkpoint: Checkpoint[S],
    handlers: Mapping[str, Handler[S]],
    *,
    clock: Clock,
    resume_with: Any = None,
    observer: Callable[[StepRecord], None] | None = None,
) -> Run[S]:
    """Run nodes until one suspends or an exit is reached; yield their needs.

    `resume_with` is the result of the external call of a waiting checkpoint. An exception of a handler propagates, with
    the node's name in its notes. Raises CheckpointInvalid for a checkpoint that fits neither graph nor `resume_with`.
    """
    if checkpoint.cursor not in graph.nodes:
        raise CheckpointInvalid(
            f"pipeline {graph.name!r} has no node {checkpoint.cursor!r}; was it changed meanwhile?"
        )
    if checkpoint.waiting != (resume_with is not None):
        waits = "waits for a result" if checkpoint.waiting else "waits for nothing"
        raise CheckpointInvalid(f"node {checkpoint.cursor} {waits}; pass resume_with exactly when it does")
    return _Run(graph, checkpoint, handlers, clock, observer).advance(resume_with)


def run_alone[R](run: Generator[Any, Any, R], answer: Callable[[Any], Any] | None = None) -> R:
    """Drive a single generator of needs; raises PipelineInvalid for a need without `answer`."""
    try:
        need = next(run)
        while True:
            if answer is None:
                raise PipelineInvalid(f"no answer for the need {need!r}")
            need = run.send(answer(need))
    except StopIteration as stop:
        result: R = stop.value
        return result


class _Run[S]:
    """One run of `advance`."""

    def __init__(
        self,
        graph: Graph,
        checkpoint: Checkpoint[S],
        handlers: Mapping[str, Handler[S]],
        clock: Clock,
        observer: Callable[[StepRecord], None] | None,
    ) -> None:
        self._graph = graph
        self._cursor = checkpoint.cursor
        self._state = checkpoint.state
        self._visits = dict(checkpoint.visits)
        self._seq = checkpoint.steps
        self._handlers = handlers
        self._clock = clock
        self._observer = observer
        self._steps: list[StepRecord] = []

    def advance(self, resume_with: Any) -> Run[S]:
        outcome, preferred, answered = NodeOutcome.SUCCESS, "", False
        while True:
            node = self._graph.nodes[self._cursor]
            if node.kind is PipelineNodeKind.EXIT:
                return self._finish(node.exit_outcome, exit_node=node.name)
            handler = self._handler(node)
            if resume_with is None and not self._visit(node):
                return self._finish(
                    NodeOutcome.FAILURE,
                    fault=f"node {node.name} was visited {node.max_visits} times, its limit",
                )
            if handler is not None:
                result = yield from self._step(node, handler, resume_with)
                if result.suspend is not None:
                    return self._suspend(result.suspend)
                resume_with, outcome, preferred, answered = None, result.outcome, result.preferred, False
            edge = choose_edge(
                self._graph.edges_from(node.name),
                outcome,
                self._state,
                preferred=preferred,
                answered=answered,
            )
            target = edge.target if edge is not None else self._retry_target(node, outcome)
            if not target:
                return self._finish(
                    NodeOutcome.FAILURE, fault=f"nothing leads on from node {node.name} after {outcome}"
                )
            # A branch decides by the outcome of the step before it, which the edge may have tested already.
            answered = answered or edge is None or edge.condition.tests_outcome
            self._cursor = target

    def _handler(self, node: PipelineNode) -> Handler[S] | None:
        if node.kind is not PipelineNodeKind.STEP:
            return None
        if node.handler not in self._handlers:
            raise PipelineInvalid(f"node {node.name}: no handler is called {node.handler!r}")
        return self._handlers[node.handler]

    def _visit(self, node: PipelineNode) -> bool:
        """Count a visit; False at the limit."""
        count = self._visits.get(node.name, 0)
        if count >= node.max_visits:
            return False
        self._visits[node.name] = count + 1
        return True

    def _step(
        self, node: PipelineNode, handler: Handler[S], resume_with: Any
    ) -> Generator[Any, Any, NodeResult[S]]:
        started_at, started = self._clock.now(), time.perf_counter()
        try:
            work: Work[S]
            if resume_with is None:
                work = handler(self._state)
            else:
                work = _resumable(node, handler).resume(self._state, resume_with)
            result = work if isinstance(work, NodeResult) else (yield from work)
            if result.suspend is not None:
                _resumable(node, handler)
        except Exception as error:
            # The note names the position; the error itself stays unchanged.
            error.add_note(f"in pipeline {self._graph.name}, node {node.name}, handler {node.handler}")
            raise
        self._state = result.state
        self._seq += 1
        record = StepRecord(
            seq=self._seq,
            node=node.name,
            handler=node.handler,
            started_at=started_at,
            duration_ms=(time.perf_counter() - started) * 1000,
            outcome=result.outcome,
            suspended=result.suspend is not None,
            changed=result.changed,
        )
        self._steps.append(record)
        if self._observer is not None:
            self._observer(record)
        return result

    def _retry_target(self, node: PipelineNode, outcome: NodeOutcome) -> str:
        """Return the retry target after a failure without an edge, or an empty text."""
        if outcome not in (NodeOutcome.FAILURE, NodeOutcome.RETRY):
            return ""
        for name in node.retry_targets:
            if self._visits.get(name, 0) < self._graph.nodes[name].max_visits:
                return name
        return ""

    def _suspend(self, suspension: Suspension) -> Progress[S]:
        return Progress(
            status=ProgressStatus.SUSPENDED,
            checkpoint=self._checkpoint(waiting=True),
            steps=tuple(self._steps),
            suspension=suspension,
        )

    def _finish(self, outcome: NodeOutcome, *, exit_node: str = "", fault: str = "") -> Progress[S]:
        return Progress(
            status=ProgressStatus.FINISHED,
            checkpoint=self._checkpoint(waiting=False),
            steps=tuple(self._steps),
            outcome=outcome,
            exit=exit_node,
            fault=fault,
        )

    def _checkpoint(self, *, waiting: bool) -> Checkpoint[S]:
        return Checkpoint(
            cursor=self._cursor, state=self._state, visits=self._visits, waiting=waiting, steps=self._seq
        )


def _resumable(node: PipelineNode, handler: Any) -> Resumable:
    if not hasattr(handler, "resume"):
        raise PipelineInvalid(f"node {node.name}: handler {node.handler!r} suspends, so it needs a `resume`")
    resumable: Resumable = handler
    return resumable
