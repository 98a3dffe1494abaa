"""A heartbeat's pipeline walked without a heartbeat: every node does nothing but end as it is told to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from arbor.clock import SystemClock
from arbor.errors import ReplyInvalid
from arbor.heartbeat.modes import Mode
from arbor.heartbeat.parsing import parse_reply
from arbor.pipeline.engine import Handler, NodeResult, Outcome, advance, begin, run_alone
from arbor.pipeline.values import Graph

#: What the nodes of a heartbeat leave for the conditions on its edges, when nothing else is said.
_CONTEXT: Mapping[str, Any] = {
    "mode": Mode.REFLECTION.value,
    "turn": 1,
    "invalid_replies": 0,
    "goes_on": False,
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Script:
    """How the walk is to go; what is not said goes well.

    `outcomes` and `preferred` are by node, in the order of its visits; a node's last outcome is followed by successes.
    `replies` are what a model answers, one after the other: they are read, and each after the first is a further turn.
    """

    outcomes: Mapping[str, Sequence[Outcome]] = field(default_factory=dict)
    preferred: Mapping[str, str] = field(default_factory=dict)
    context: Mapping[str, Any] = field(default_factory=dict)
    replies: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Passed:
    """A node that the walk passed, how it ended there, and what there is to say about it."""

    node: str
    handler: str
    outcome: Outcome
    notes: Sequence[str] = ()


@dataclass(frozen=True, kw_only=True, slots=True)
class Rehearsal:
    """The way that the walk took. `exit` is empty when it reached none; `fault` says why."""

    passed: Sequence[Passed]
    outcome: Outcome
    exit: str
    fault: str
    #: Steps that it did not pass.
    unvisited: Sequence[str]


def rehearse(graph: Graph, script: Script) -> Rehearsal:
    """Walk the graph by the script. Nothing is read, asked or written."""
    actors = {
        node.name: _actor(node.handler, node.name, script) for node in graph.nodes.values() if node.handler
    }
    # Each node has an actor of its own: one handler may serve several nodes.
    nodes = {
        name: replace(node, handler=name) if node.handler else node for name, node in graph.nodes.items()
    }
    stage = replace(graph, nodes=nodes)
    facts: _Facts = {**_CONTEXT, **script.context}
    walking = advance(stage, begin(stage, facts), actors, clock=SystemClock())
    progress = run_alone(walking)
    passed = [
        Passed(
            node=step.node, handler=graph.nodes[step.node].handler, outcome=step.outcome, notes=step.changed
        )
        for step in progress.steps
    ]
    seen = {step.node for step in passed}
    return Rehearsal(
        passed=passed,
        outcome=progress.outcome or Outcome.FAILURE,
        exit=progress.exit,
        fault=progress.fault,
        unvisited=[name for name in actors if name not in seen],
    )


#: The state of a rehearsal: the names that conditions look at, with their values.
type _Facts = Mapping[str, Any]


class _Actor:
    """Ends as the script says."""

    def __init__(self, node: str, script: Script) -> None:
        self._outcomes = list(script.outcomes.get(node, ()))
        self._preferred = script.preferred.get(node, "")

    def __call__(self, facts: _Facts) -> NodeResult[_Facts]:
        """Answer with the next outcome."""
        outcome = self._outcomes.pop(0) if self._outcomes else Outcome.SUCCESS
        return NodeResult(state=facts, outcome=outcome, preferred=self._preferred)


class _Reader(_Actor):
    """Reads the script's replies, as a heartbeat would."""

    def __init__(self, node: str, script: Script) -> None:
        super().__init__(node, script)
        self._replies = list(script.replies)

    def __call__(self, facts: _Facts) -> NodeResult[_Facts]:
        """Read the next reply; one that cannot be read is asked for again, by the next one."""
        if not self._replies:
            return super().__call__(facts)
        left = len(self._replies) - 1
        try:
            parsed = parse_reply(self._replies.pop(0))
        except ReplyInvalid as error:
            tries = facts["invalid_replies"] + 1
            return NodeResult(
                state={**facts, "invalid_replies": tries, "replies_left": left},
                outcome=Outcome.RETRY,
                changed=(str(error),),
            )
        wanted = ", ".join(action.action for action in parsed.reply.actions) or "nothing"
        notes = (
            f"wants {wanted}",
            *(f"mended: {repair}" for repair in parsed.repairs),
            *(f"dropped {item.path}: {item.reason}" for item in parsed.dropped),
        )
        return NodeResult(state={**facts, "invalid_replies": 0, "replies_left": left}, changed=notes)


class _Thinker(_Actor):
    """Fails as a model that gives no reply."""

    def __call__(self, facts: _Facts) -> NodeResult[_Facts]:
        """Answer with the next outcome."""
        result = super().__call__(facts)
        return replace(result, state={**facts, "lost": result.outcome is Outcome.FAILURE})


class _Turner(_Actor):
    """Goes on to a further turn while there are replies, unless this one came to nothing."""

    def __call__(self, facts: _Facts) -> NodeResult[_Facts]:
        """Say whether the beat goes on."""
        result = super().__call__(facts)
        if facts.get("lost") or facts["invalid_replies"] or not facts.get("replies_left"):
            known = {"goes_on": False} if "replies_left" in facts else {}
            return replace(result, state={**facts, **known})
        turn = facts["turn"] + 1
        changed = (f"goes on to turn {turn}",)
        return replace(result, state={**facts, "goes_on": True, "turn": turn}, changed=changed)


def _actor(handler: str, node: str, script: Script) -> Handler[_Facts]:
    kinds: Mapping[str, type[_Actor]] = {"think": _Thinker, "parse": _Reader, "follow_up": _Turner}
    return kinds.get(handler, _Actor)(node, script)
