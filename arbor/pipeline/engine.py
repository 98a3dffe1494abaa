"""The pipeline engine: runs the handlers of a graph on a state until one suspends or the graph ends.

A handler is a function of the state, or a generator that yields needs and receives their answers. A run is then a
generator too, and its driver answers the needs of several runs together. Nothing here reads or writes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable

from arbor.clock import Clock
from arbor.errors import CheckpointInvalid, PipelineInvalid
from arbor.pipeline.conditions import NodeOutcome as NodeOutcome
from arbor.pipeline.values import Graph, PipelineEdge, PipelineNode, PipelineNodeKind

#: The fields of a checkpoint that are its position.
_POSITION = ("cursor", "visits", "waiting", "steps")


@dataclass(frozen=True, kw_only=True, slots=True)
class Suspension:
    """The call that a node waits for."""

    kind: str
    payload: Any


@dataclass(frozen=True, kw_only=True, slots=True)
class Checkpoint[S]:
    """The position and state of a run.

    `cursor` is the next node, or, while `waiting`, the suspended one. `steps` counts the steps so far.
    """

    cursor: str
    state: S
    visits: Mapping[str, int] = field(default_factory=dict)
    waiting: bool = False
    steps: int = 0

    def position(self) -> dict[str, Any]:
        """Return everything but the state as a JSON object."""
        return {**{name: getattr(self, name) for name in _POSITION}, "visits": dict(self.visits)}

    @classmethod
    def at(cls, position: Mapping[str, Any], state: S) -> Checkpoint[S]:
        """Return the checkpoint at a stored position; raises CheckpointInvalid naming what is missing."""
        if missing := [name for name in _POSITION if name not in position]:
            raise CheckpointInvalid(f"a stored checkpoint needs {', '.join(missing)}")
        return cls(state=state, **{name: position[name] for name in _POSITION})


@dataclass(frozen=True, kw_only=True, slots=True)
class StepRecord:
    """One line of the trace. A step that suspends has two: for its call and its continuation."""

    sequence: int
    node: str
    handler: str
    started_at: datetime
    duration_ms: float
    outcome: NodeOutcome
    suspended: bool
    changed: tuple[str, ...]


class ProgressStatus(StrEnum):
    """The reasons why a run stopped."""

    #: A node waits for an external call.
    SUSPENDED = "suspended"
    #: The run has ended.
    FINISHED = "finished"


@dataclass(frozen=True, kw_only=True, slots=True)
class Progress[S]:
    """The progress of a run; `exit` is the exit node, or empty with a `fault`."""

    status: ProgressStatus
    checkpoint: Checkpoint[S]
    steps: tuple[StepRecord, ...]
    suspension: Suspension | None = None
    outcome: NodeOutcome | None = None
    exit: str = ""
    fault: str = ""


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResult[S]:
    """The result of a node: state, outcome, pending call, texts for the trace, and the preferred label of an edge."""

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
    """A handler: the work of a node as a function of the state."""

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
    the node's name in its notes. Raises CheckpointInvalid for a checkpoint that does not fit the graph or `resume_with`,
    PipelineInvalid for a handler that is missing, or that suspends without a `resume`.
    """
    if checkpoint.cursor not in graph.nodes:
        raise CheckpointInvalid(
            f"pipeline {graph.name!r} has no node {checkpoint.cursor!r}; was it changed meanwhile?"
        )
    if checkpoint.waiting and graph.nodes[checkpoint.cursor].kind is not PipelineNodeKind.STEP:
        raise CheckpointInvalid(
            f"node {checkpoint.cursor} of pipeline {graph.name!r} is no step, so it waits for no result; was it changed meanwhile?"
        )
    if checkpoint.waiting != (resume_with is not None):
        waits = "waits for a result" if checkpoint.waiting else "waits for nothing"
        raise CheckpointInvalid(f"node {checkpoint.cursor} {waits}; pass resume_with exactly when it does")
    return _Run(graph, checkpoint, handlers, clock, observer).advance(resume_with)


def choose_edge(
    edges: Iterable[PipelineEdge],
    outcome: NodeOutcome,
    context: Any,
    *,
    preferred: str = "",
    outcome_handled: bool = False,
) -> PipelineEdge | None:
    """Choose an edge by a true condition, then the preferred label, the higher weight, the earlier name.

    After a failure or retry, only an edge whose condition tests the outcome may be chosen, unless `outcome_handled`: the run
    has reacted to the outcome already, by such an edge or a retry target. Returns None if no edge may be chosen.
    """
    may_go_on = outcome_handled or outcome in (NodeOutcome.SUCCESS, NodeOutcome.PARTIAL)
    edges = tuple(edges)
    if may_go_on and len(edges) == 1 and not edges[0].condition.clauses:
        # Most nodes have one edge.
        return edges[0]
    open_edges = [
        edge
        for edge in edges
        if edge.condition.is_true(outcome, context) and (may_go_on or edge.condition.tests_outcome)
    ]
    return min(
        open_edges,
        key=lambda edge: (
            not edge.condition.clauses,
            not preferred or edge.label != preferred,
            -edge.weight,
            edge.target,
        ),
        default=None,
    )


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
        outcome, preferred, outcome_handled = NodeOutcome.SUCCESS, "", False
        while True:
            node = self._graph.nodes[self._cursor]
            if node.kind is PipelineNodeKind.EXIT:
                return self._stop(outcome=node.exit_outcome, exit=node.name)
            handler = self._handler(node)
            if resume_with is None and not self._visit(node):
                visits = "once" if node.max_visits == 1 else f"{node.max_visits} times"
                fault = f"node {node.name} was visited {visits}, its limit"
                return self._stop(outcome=NodeOutcome.FAILURE, fault=fault)
            if handler is not None:
                result = yield from self._step(node, handler, resume_with)
                if result.suspend is not None:
                    return self._stop(result.suspend)
                resume_with, outcome, preferred = None, result.outcome, result.preferred
                outcome_handled = False
            edge = choose_edge(
                self._graph.edges_from(node.name),
                outcome,
                self._state,
                preferred=preferred,
                outcome_handled=outcome_handled,
            )
            target = edge.target if edge is not None else self._retry_target(node, outcome)
            if not target:
                fault = f"nothing leads on from node {node.name} after {outcome}"
                return self._stop(outcome=NodeOutcome.FAILURE, fault=fault)
            # A branch decides by the outcome of the step before it, which the edge may have tested already.
            outcome_handled = outcome_handled or edge is None or edge.condition.tests_outcome
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
            sequence=self._seq,
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

    def _stop(self, suspension: Suspension | None = None, **end: Any) -> Progress[S]:
        """Return the progress of a run that waits for a call, or has come to this end."""
        waiting = suspension is not None
        return Progress(
            status=ProgressStatus.SUSPENDED if waiting else ProgressStatus.FINISHED,
            checkpoint=Checkpoint(
                cursor=self._cursor, state=self._state, visits=self._visits, waiting=waiting, steps=self._seq
            ),
            steps=tuple(self._steps),
            suspension=suspension,
            **end,
        )


def _resumable(node: PipelineNode, handler: Any) -> Resumable:
    if not hasattr(handler, "resume"):
        raise PipelineInvalid(f"node {node.name}: handler {node.handler!r} suspends, so it needs a `resume`")
    resumable: Resumable = handler
    return resumable
