"""Handlers of a few words, and walks over small graphs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from arbor.clock import FrozenClock
from arbor.pipeline.engine import (
    Context,
    NodeResult,
    Outcome,
    Phase,
    Progress,
    Suspension,
    advance,
    begin,
)
from arbor.pipeline.graph import load_graph

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
