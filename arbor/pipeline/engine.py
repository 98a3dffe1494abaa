"""Walks a heartbeat through its graph, one phase at a time, and stops wherever the world has to do something.

The walk stops for three reasons: the next node belongs to the other phase (the caller opens or closes its
transaction), a node suspended on an external call (the caller stores the checkpoint), or an exit was reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Protocol, runtime_checkable

from arbor.clock import Clock
from arbor.errors import CheckpointInvalid, PipelineInvalid
from arbor.pipeline.conditions import choose_edge
from arbor.pipeline.outcomes import Outcome, Phase
from arbor.pipeline.progress import (
    Checkpoint,
    Context,
    Progress,
    ProgressStatus,
    StepRecord,
    Suspension,
)
from arbor.pipeline.values import Graph, Node, NodeKind

__all__ = [
    "Checkpoint",
    "Context",
    "Handler",
    "NodeResult",
    "Outcome",
    "Outgoing",
    "Phase",
    "Progress",
    "ProgressStatus",
    "Resumable",
    "StepRecord",
    "Suspension",
    "advance",
    "begin",
]


@dataclass(frozen=True, kw_only=True, slots=True)
class NodeResult:
    """What a node answers: how it went, what to merge into the context, what it waits for, what it changed.

    `preferred` is the label of the edge that it would follow, where the conditions leave a choice.
    """

    outcome: Outcome = Outcome.SUCCESS
    updates: Mapping[str, Any] = field(default_factory=dict)
    suspend: Suspension | None = None
    changed: tuple[str, ...] = ()
    preferred: str = ""


class Handler(Protocol):
    """Does the work of a step."""

    @property
    def phase(self) -> Phase:
        """Return where the work happens."""
        ...

    def run(self, context: Context) -> NodeResult:
        """Do the work; the context is read-only."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """A handler that may suspend."""

    def resume(self, context: Context, result: dict[str, Any]) -> NodeResult:
        """Go on with what the call brought."""
        ...


@runtime_checkable
class Outgoing(Protocol):
    """A handler that belongs outside of transactions only if, this time, it has something to wait for."""

    def waits(self, context: Context) -> bool:
        """Tell whether the work waits for anything; where it does not, it is done in whichever phase the walk is in."""
        ...


def begin(graph: Graph, context: Context) -> Checkpoint:
    """Return the checkpoint of a walk that has not begun."""
    return Checkpoint(cursor=graph.start, context=dict(context))


def advance(
    graph: Graph,
    checkpoint: Checkpoint,
    handlers: Mapping[str, Handler],
    *,
    phase: Phase,
    clock: Clock,
    resume_with: dict[str, Any] | None = None,
    observer: Callable[[StepRecord], None] | None = None,
) -> Progress:
    """Run consecutive nodes of one phase and say why it stopped.

    `resume_with` is what the external call brought; it is wanted exactly when the checkpoint is waiting. An exception
    of a handler passes through, with the node's name noted on it.
    Raises CheckpointInvalid when checkpoint and graph, or checkpoint and `resume_with`, do not fit.
    """
    if checkpoint.cursor not in graph.nodes:
        raise CheckpointInvalid(
            f"pipeline {graph.name!r} has no node {checkpoint.cursor!r}; was it changed meanwhile?"
        )
    if checkpoint.waiting != (resume_with is not None):
        waits = "waits for a result" if checkpoint.waiting else "waits for nothing"
        raise CheckpointInvalid(f"node {checkpoint.cursor} {waits}; pass resume_with exactly when it does")
    walk = _Walk(graph, checkpoint, handlers, phase, clock, observer)
    return walk.go(resume_with)


class _Walk:
    """The state of one call of `advance`."""

    def __init__(
        self,
        graph: Graph,
        checkpoint: Checkpoint,
        handlers: Mapping[str, Handler],
        phase: Phase,
        clock: Clock,
        observer: Callable[[StepRecord], None] | None,
    ) -> None:
        self._graph = graph
        self._cursor = checkpoint.cursor
        self._context = dict(checkpoint.context)
        self._visits = dict(checkpoint.visits)
        self._seq = checkpoint.steps
        self._handlers = handlers
        self._phase = phase
        self._clock = clock
        self._observer = observer
        self._steps: list[StepRecord] = []

    def go(self, resume_with: dict[str, Any] | None) -> Progress:
        """Walk until something stops it."""
        outcome, preferred, answered = Outcome.SUCCESS, "", False
        while True:
            node = self._graph.nodes[self._cursor]
            if node.kind is NodeKind.EXIT:
                return self._finished(node.exit_outcome, exit_node=node.name)
            handler = self._handler(node)
            if handler is not None and self._belongs_elsewhere(handler):
                return self._stopped(ProgressStatus.CROSSING, waiting=resume_with is not None)
            if resume_with is None and not self._visit(node):
                return self._finished(
                    Outcome.FAILURE, fault=f"node {node.name} was visited {node.max_visits} times, its limit"
                )
            if handler is not None:
                result = self._step(node, handler, resume_with)
                if result.suspend is not None:
                    return self._stopped(ProgressStatus.SUSPENDED, waiting=True, suspension=result.suspend)
                resume_with, outcome, preferred, answered = None, result.outcome, result.preferred, False
            edge = choose_edge(
                self._graph.edges_from(node.name),
                outcome,
                self._context,
                preferred=preferred,
                answered=answered,
            )
            target = edge.target if edge is not None else self._retry_target(node, outcome)
            if not target:
                return self._finished(
                    Outcome.FAILURE, fault=f"nothing leads on from node {node.name} after {outcome}"
                )
            # A branch goes by the outcome of the step before it, which the way to it may have answered already.
            answered = answered or edge is None or edge.condition.tests_outcome
            self._cursor = target

    def _belongs_elsewhere(self, handler: Handler) -> bool:
        if handler.phase is self._phase:
            return False
        # Asked by name: `isinstance` of a protocol goes through all its members, at every node.
        waits: Callable[[Context], bool] | None = getattr(handler, "waits", None)
        return waits is None or waits(self._context)

    def _handler(self, node: Node) -> Handler | None:
        if node.kind is not NodeKind.STEP:
            return None
        if node.handler not in self._handlers:
            raise PipelineInvalid(f"node {node.name}: no handler is called {node.handler!r}")
        return self._handlers[node.handler]

    def _visit(self, node: Node) -> bool:
        """Count a visit; False if the node has had all of its visits."""
        count = self._visits.get(node.name, 0)
        if count >= node.max_visits:
            return False
        self._visits[node.name] = count + 1
        return True

    def _step(self, node: Node, handler: Handler, resume_with: dict[str, Any] | None) -> NodeResult:
        started_at, started = self._clock.now(), time.perf_counter()
        context = MappingProxyType(self._context)
        try:
            if resume_with is None:
                result = handler.run(context)
            else:
                result = _resumable(node, handler).resume(context, resume_with)
            if result.suspend is not None:
                _resumable(node, handler)
        except Exception as error:
            # Whatever it is, it goes on: only the place is noted on it.
            error.add_note(f"in pipeline {self._graph.name}, node {node.name}, handler {node.handler}")
            raise
        self._context = {**self._context, **result.updates}
        self._seq += 1
        record = StepRecord(
            seq=self._seq,
            node=node.name,
            handler=node.handler,
            phase=self._phase,
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

    def _retry_target(self, node: Node, outcome: Outcome) -> str:
        """Return where to go after a failure that no edge answers; empty if the walk ends here."""
        if outcome not in (Outcome.FAILURE, Outcome.RETRY):
            return ""
        for name in node.retry_targets:
            if self._visits.get(name, 0) < self._graph.nodes[name].max_visits:
                return name
        return ""

    def _stopped(
        self, status: ProgressStatus, *, waiting: bool, suspension: Suspension | None = None
    ) -> Progress:
        return Progress(
            status=status,
            checkpoint=self._checkpoint(waiting=waiting),
            steps=tuple(self._steps),
            suspension=suspension,
        )

    def _finished(self, outcome: Outcome, *, exit_node: str = "", fault: str = "") -> Progress:
        return Progress(
            status=ProgressStatus.FINISHED,
            checkpoint=self._checkpoint(waiting=False),
            steps=tuple(self._steps),
            outcome=outcome,
            exit=exit_node,
            fault=fault,
        )

    def _checkpoint(self, *, waiting: bool) -> Checkpoint:
        return Checkpoint(
            cursor=self._cursor,
            context=self._context,
            visits=self._visits,
            waiting=waiting,
            steps=self._seq,
        )


def _resumable(node: Node, handler: Handler) -> Resumable:
    if not isinstance(handler, Resumable):
        raise PipelineInvalid(f"node {node.name}: handler {node.handler!r} suspends, so it needs a `resume`")
    return handler
