"""Small handlers, and runs of small graphs whose state is a mapping."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from arbor.clock import FrozenClock
from arbor.pipeline.engine import (
    NodeOutcome,
    NodeResult,
    Progress,
    Steps,
    Suspension,
    advance,
    begin,
    run_alone,
)
from arbor.pipeline.graph import load_graph

CLOCK = FrozenClock(datetime(2026, 1, 5, 9, 0, tzinfo=UTC))

type State = Mapping[str, Any]
type Result = NodeResult[State]
type Step = Callable[[State], Result | Steps[State]]


@dataclass
class SuspendingHandler:
    """A handler that suspends, then stores the results."""

    results: list[dict[str, Any]] = field(default_factory=list)

    def __call__(self, state: State) -> Result:
        return NodeResult(
            state=state, suspend=Suspension(kind="think", payload={"about": state.get("topic", "")})
        )

    def resume(self, state: State, result: dict[str, Any]) -> Result:
        self.results.append(result)
        return NodeResult(
            state={**state, "reply": result["text"]}, outcome=NodeOutcome(result.get("outcome", "success"))
        )


def sets(outcome: NodeOutcome = NodeOutcome.SUCCESS, **updates: Any) -> Step:
    """Return a step that sets these values in the state and ends with this outcome."""
    return lambda state: NodeResult(state={**state, **updates}, outcome=outcome, changed=tuple(updates))


def counts(name: str, outcome: NodeOutcome) -> Step:
    """Return a step that counts its runs under a name and ends with this outcome."""
    return lambda state: NodeResult(state={**state, name: state.get(name, 0) + 1}, outcome=outcome)


def needs(*wanted: Any, name: str = "answers") -> Step:
    """Return a step with these needs, one after the other, that stores the answers."""

    def step(state: State) -> Steps[State]:
        answers = []
        for need in wanted:
            answers.append((yield need))
        return NodeResult(state={**state, name: answers})

    return step


HEAD = "digraph g { start [shape=Mdiamond]; done [shape=Msquare]; lost [shape=Msquare, outcome=failure]; "
#: A graph of one step.
ONE = "a [type=a]; start -> a -> done; start -> lost [weight=-1]"


def run_pipeline(
    body: str, handlers: dict[str, Any], *, answer: Callable[[Any], Any] | None = None, **state: Any
) -> Progress[State]:
    """Run a graph from its start and from this state, until it ends or suspends."""
    graph = load_graph(f"{HEAD}{body} }}", handlers=handlers)
    return run_alone(advance(graph, begin(graph, state), handlers, clock=CLOCK), answer)


def nodes_of(progress: Progress[State]) -> list[str]:
    return [step.node for step in progress.steps]
