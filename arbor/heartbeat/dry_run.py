"""Dry runs of a pipeline: handlers that do nothing but end with scripted outcomes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from arbor.clock import SystemClock
from arbor.errors import Invalid, ReplyInvalid
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.situation import Mode
from arbor.pipeline.engine import NodeOutcome, NodeResult, StepRecord, advance, begin, run_alone
from arbor.pipeline.values import Graph, PipelineNode

#: The default context for the conditions on edges.
_DEFAULT_CONTEXT: Mapping[str, Any] = {
    "mode": Mode.REFLECTION.value,
    "round_trip": 1,
    "invalid_replies": 0,
    "goes_on": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """The script of a dry run; nodes without an entry succeed.

    `outcomes` has the outcomes of a node's visits, in order; later visits succeed. `preferred` has the preferred label by
    node. `replies` are the model's texts, one for each visit of `parse`, whose outcome they decide.
    """

    outcomes: Mapping[str, Sequence[NodeOutcome]] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    replies: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class DryRun:
    """The path of a dry run. `exit` is empty if none was reached; `fault` says why."""

    passed: Sequence[StepRecord]
    outcome: NodeOutcome
    exit: str
    fault: str
    unvisited: Sequence[str]


def dry_run(graph: Graph, script: Script) -> DryRun:
    """Run the graph by the script, without any side effect."""
    handlers = {node.name: _Handler(node, script) for node in graph.nodes.values() if node.handler}
    # Each node gets a handler of its own, because several nodes may share a handler's name.
    nodes = {
        name: replace(node, handler=name) if node.handler else node for name, node in graph.nodes.items()
    }
    scripted = replace(graph, nodes=nodes)
    context = _initial_context(script.context)
    progress = run_alone(advance(scripted, begin(scripted, context), handlers, clock=SystemClock()))
    passed = [replace(step, handler=graph.nodes[step.node].handler) for step in progress.steps]
    visited = {step.node for step in passed}
    return DryRun(
        passed=passed,
        outcome=progress.outcome or NodeOutcome.FAILURE,
        exit=progress.exit,
        fault=progress.fault,
        unvisited=[name for name in handlers if name not in visited],
    )


#: The state of a dry run: the context of conditions.
type _Context = Mapping[str, Any]


def _initial_context(context: Mapping[str, Any]) -> _Context:
    """Return the context of the first node. Raises Invalid for a value of another type than nodes expect."""
    for name, default in _DEFAULT_CONTEXT.items():
        value = context.get(name, default)
        if type(value) is not type(default):
            raise Invalid(f"{name} must be of type {type(default).__name__}, like {default!r}, got {value!r}")
    return {**_DEFAULT_CONTEXT, **context}


class _Handler:
    """Ends with the scripted outcome; the handlers around the model also read the scripted replies."""

    def __init__(self, node: PipelineNode, script: Script) -> None:
        self._kind = node.handler
        self._outcomes = list(script.outcomes.get(node.name, ()))
        self._preferred = script.preferred.get(node.name, "")
        self._replies = list(script.replies) if node.handler == "parse" else []

    def __call__(self, context: _Context) -> NodeResult[_Context]:
        if self._replies:
            return self._parse(context)
        outcome = self._outcomes.pop(0) if self._outcomes else NodeOutcome.SUCCESS
        result = NodeResult(state=context, outcome=outcome, preferred=self._preferred)
        match self._kind:
            case "think":
                return replace(result, state={**context, "lost": outcome is NodeOutcome.FAILURE})
            case "follow_up":
                return _follow_up(result)
        return result

    def _parse(self, context: _Context) -> NodeResult[_Context]:
        left = len(self._replies) - 1
        try:
            parsed = parse_reply(self._replies.pop(0))
        except ReplyInvalid as error:
            tries = context["invalid_replies"] + 1
            return NodeResult(
                state={**context, "invalid_replies": tries, "replies_left": left},
                outcome=NodeOutcome.RETRY,
                changed=(str(error),),
            )
        wanted = ", ".join(action.action for action in parsed.reply.actions) or "nothing"
        notes = (
            f"wants {wanted}",
            *(f"mended: {repair}" for repair in parsed.repairs),
            *(f"dropped {item.in_words}" for item in parsed.dropped),
        )
        return NodeResult(state={**context, "invalid_replies": 0, "replies_left": left}, changed=notes)


def _follow_up(result: NodeResult[_Context]) -> NodeResult[_Context]:
    """Go on while there are replies, unless this round trip failed."""
    context = result.state
    if context.get("lost") or context["invalid_replies"] or not context.get("replies_left"):
        ended = {"goes_on": False} if "replies_left" in context else {}
        return replace(result, state={**context, **ended})
    round_trip = context["round_trip"] + 1
    changed = (f"goes on to round trip {round_trip}",)
    return replace(result, state={**context, "goes_on": True, "round_trip": round_trip}, changed=changed)
