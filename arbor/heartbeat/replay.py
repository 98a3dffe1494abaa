"""Replay of a recorded heartbeat from its stored situation and replies."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from itertools import takewhile, zip_longest
from typing import Any, NamedTuple

from arbor.agents.energy import EnergyTerms
from arbor.authority.reflexes import DEFAULT_TERMS, ReflexTerms
from arbor.errors import ReplyInvalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import DEFAULT_BUDGET, budget_of
from arbor.heartbeat.decision import Decision, DecisionLimits, DecisionVerdict, decide, refuse
from arbor.heartbeat.focus import consolidation_refusals
from arbor.heartbeat.guards import (
    apply_boundaries,
    apply_boundaries_to_reply,
    apply_reflexes,
    dropped_at_boundaries,
)
from arbor.heartbeat.prompts.prompt import Prompt, build_prompt
from arbor.heartbeat.replies.parsing import parse_reply
from arbor.heartbeat.replies.reply import ProposedAction, Reply
from arbor.heartbeat.replies.round_trips import merge_replies, within_heartbeat
from arbor.heartbeat.situation import Environment, Situation
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import estimate_tokens
from arbor.selves.boundaries import BoundaryRule

#: The compared fields of a decision; results are not compared.
_COMPARED = ("action", "params", "verdict", "reason", "goal_id", "intent_id")
#: The grants and the trust of that time are not recorded, so a denial is repeated.
_DENIED = (DecisionVerdict.NOT_AUTHORIZED, DecisionVerdict.NOT_PERMITTED, DecisionVerdict.AWAITS_APPROVAL)
#: Lines of context in a diff.
_CONTEXT_LINES = 1


@dataclass(frozen=True, kw_only=True)
class RecordedHeartbeat:
    """The stored inputs and decisions of a heartbeat."""

    situation: Situation
    #: The sections of the sent prompt: [(name, text)].
    sections: Sequence[tuple[str, str]]
    #: The model's texts in order, also unreadable ones.
    replies: Sequence[str]
    #: `Heartbeat.actions`, `dropped` and `repairs`.
    actions: Sequence[Mapping[str, Any]]
    dropped: Sequence[Mapping[str, Any]]
    repairs: Sequence[str]
    #: Tokens of the model's window and of its longest reply.
    window: int
    reply_tokens: int
    #: The counter of tokens that the prompt was built with.
    count: CountTokens = estimate_tokens
    #: Own and default boundaries.
    boundaries: Sequence[BoundaryRule] = ()
    reflexes: ReflexTerms = DEFAULT_TERMS
    #: Returns, by action, the reasons to refuse an action as too soon.
    cooling: Callable[[Environment], Mapping[str, str]] = field(default=lambda _: {})


class Difference(NamedTuple):
    """A difference between record and replay."""

    #: `prompt: NAME`, `action 2: verdict`, `dropped`, `repairs`, `replies`.
    where: str
    recorded: str
    replayed: str

    @property
    def diff(self) -> str:
        """Return the difference line by line: `-` recorded, `+` replayed."""
        lines = difflib.unified_diff(
            self.recorded.splitlines(), self.replayed.splitlines(), lineterm="", n=_CONTEXT_LINES
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """The result of a replay."""

    differences: Sequence[Difference]
    decisions: Sequence[Decision]
    #: The parts that were not compared, and the reasons.
    notes: Sequence[str]

    @property
    def is_same(self) -> bool:
        return not self.differences


def replay(heartbeat: RecordedHeartbeat) -> Replay:
    """Build the prompt, parse the replies and decide again, and compare each with the record."""
    notes: list[str] = []
    differences = _compare_prompt(heartbeat, notes)
    replies, dropped, repairs, unreadable = _read_replies(heartbeat.replies, heartbeat.boundaries)
    if unreadable:
        notes.append(
            f"replies that could not be read, and that the heartbeat did not use either: {unreadable}"
        )
    decisions = _decide_round_trips(heartbeat, replies, notes)
    differences += _compare_decisions(heartbeat.actions, decisions)
    newly_dropped = [item for item in dropped if item not in heartbeat.dropped]
    dropped_later = [item for item in heartbeat.dropped if item not in dropped]
    if newly_dropped:
        differences.append(Difference("dropped", _format_items(heartbeat.dropped), _format_items(dropped)))
    elif dropped_later:
        notes.append(
            f"items that were set aside after the reply was read, which is not replayed: {len(dropped_later)}"
        )
    if list(heartbeat.repairs) != repairs:
        differences.append(Difference("repairs", "\n".join(heartbeat.repairs), "\n".join(repairs)))
    return Replay(differences=differences, decisions=decisions, notes=notes)


def decide_reply(heartbeat: RecordedHeartbeat, text: str) -> tuple[Decision, ...]:
    """Return the decisions about another reply to the prompt. Raises ReplyInvalid."""
    return _decide(heartbeat, parse_reply(text).reply.actions, heartbeat.situation.energy)


def prompt_of(heartbeat: RecordedHeartbeat) -> Prompt | None:
    """Return the prompt rebuilt with the recorded mark; None without one."""
    recorded = dict(heartbeat.sections)
    mark = recorded.get("mark", "").rpartition(" ")[2].rstrip(".")
    if not mark:
        return None
    return build_prompt(
        _as_offered(heartbeat.situation),
        recorded.get("character", ""),
        nonce=mark,
        window=heartbeat.window,
        reply_tokens=heartbeat.reply_tokens,
        count=heartbeat.count,
    )


def _as_offered(situation: Situation) -> Situation:
    """Return the situation with the percepts that had no room, and parameters in today's order: stored JSON has no order."""
    offers = []
    for offer in situation.actions:
        spec = ACTIONS.get(offer.name)
        order = list(spec.params.model_fields) if spec is not None else []
        index = {name: number for number, name in enumerate(order)}
        params = dict(sorted(offer.params.items(), key=lambda item: index.get(item[0], len(index))))
        offers.append(offer.model_copy(update={"params": params}))
    reached = sorted([*situation.percepts, *situation.waiting], key=lambda percept: percept.at)
    return situation.model_copy(update={"actions": offers, "percepts": reached, "waiting": []})


def _compare_prompt(heartbeat: RecordedHeartbeat, notes: list[str]) -> list[Difference]:
    prompt = prompt_of(heartbeat)
    if prompt is None:
        notes.append("the prompt is not compared: the record of its call has no sections")
        return []
    recorded = dict(heartbeat.sections)
    built = {section.name: section.text for section in prompt.sections}
    return [
        Difference(f"prompt: {name}", recorded.get(name, ""), built.get(name, ""))
        for name in dict.fromkeys([*recorded, *built])
        if recorded.get(name, "") != built.get(name, "")
    ]


def _read_replies(
    texts: Sequence[str], boundaries: Sequence[BoundaryRule]
) -> tuple[list[Reply], list[dict[str, Any]], list[str], int]:
    """Return the readable replies, dropped items, repairs, and the number of unreadable replies."""
    replies: list[Reply] = []
    earlier: Reply | None = None
    dropped: list[dict[str, Any]] = []
    repairs: list[str] = []
    unreadable = 0
    for text in texts:
        try:
            parsed = parse_reply(text)
        except ReplyInvalid:
            unreadable += 1
            continue
        reply, left_over = within_heartbeat(earlier, parsed.reply)
        reply, matches = apply_boundaries_to_reply(reply, boundaries)
        dropped += [
            item.model_dump() for item in (*parsed.dropped, *left_over, *dropped_at_boundaries(matches))
        ]
        repairs += parsed.repairs
        replies.append(reply)
        earlier = merge_replies(earlier, reply)
    return replies, dropped, repairs, unreadable


def _decide_round_trips(
    heartbeat: RecordedHeartbeat, replies: Sequence[Reply], notes: list[str]
) -> list[Decision]:
    """Decide each round trip with the energy after the recorded actions of earlier ones."""
    decisions: list[Decision] = []
    left = heartbeat.situation.energy
    for reply in replies:
        recorded = heartbeat.actions[len(decisions) :]
        # Actions that people had approved came before those of the reply.
        approved = [*takewhile(lambda entry: entry.get("by_approval"), recorded)]
        names = ProposedAction.model_fields
        proposed = [
            *(ProposedAction(**{name: entry[name] for name in names if name in entry}) for entry in approved),
            *reply.actions,
        ]
        entries = recorded[: len(proposed)]
        by_words = _decide(heartbeat, proposed, left)
        decided = [
            _as_recorded(decision, entries[index] if index < len(entries) else {})
            for index, decision in enumerate(by_words)
        ]
        if any(
            before.runs and after.verdict is DecisionVerdict.BOUNDARY
            for before, after in zip(by_words, decided, strict=True)
        ):
            notes.append("a boundary matched by meaning is repeated as recorded: nothing is embedded here")
        decisions += decided
        left = max(0.0, left - sum(float(entry.get("cost") or 0) for entry in entries))
    return decisions


def _decide(
    heartbeat: RecordedHeartbeat, proposed: Sequence[ProposedAction], energy: float
) -> tuple[Decision, ...]:
    terms = heartbeat.situation.terms
    budget = (
        budget_of(terms.budget, terms.allowance, EnergyTerms(costs=terms.costs)) if terms else DEFAULT_BUDGET
    )
    limits = DecisionLimits(
        allowed=terms.allowed if terms else [offer.name for offer in heartbeat.situation.actions],
        energy=energy,
        budget=budget,
        missing=terms.missing if terms else {},
        tools=heartbeat.situation.tools,
        cooling={
            **consolidation_refusals(heartbeat.situation),
            **heartbeat.cooling(heartbeat.situation.environment),
        },
        reflexes=partial(apply_reflexes, terms=heartbeat.reflexes),
        boundaries=partial(apply_boundaries, boundaries=heartbeat.boundaries, vectors={}),
    )
    return decide(proposed, limits)


def _as_recorded(decision: Decision, entry: Mapping[str, Any]) -> Decision:
    """Return the decision, refused as recorded: by a boundary that matched by meaning, or for lack of a grant or an approval."""
    verdict = entry.get("verdict")
    if entry.get("action") != decision.action:
        return decision
    reason = str(entry.get("reason", ""))
    if verdict in _DENIED:
        denied = refuse(decision, DecisionVerdict(verdict), reason)
        # A denial by `decide` has the parameters as proposed, one by `act` has them complete.
        return denied.model_copy(update={"params": entry.get("params", decision.params)})
    if decision.runs and verdict == DecisionVerdict.BOUNDARY:
        return refuse(decision, DecisionVerdict.BOUNDARY, reason)
    return decision


def _compare_decisions(
    recorded: Sequence[Mapping[str, Any]], decisions: Sequence[Decision]
) -> list[Difference]:
    differences = []
    for number, (entry, decision) in enumerate(zip_longest(recorded, decisions), start=1):
        if entry is None or decision is None:
            recorded_action = "" if entry is None else str(entry.get("action"))
            decided_action = "" if decision is None else decision.action
            differences.append(Difference(f"action {number}", recorded_action, decided_action))
            continue
        decided = decision.model_dump(mode="json")
        differences += [
            Difference(f"action {number}: {name}", _text(entry[name]), _text(decided[name]))
            for name in _COMPARED
            if name in entry and entry[name] != decided[name]
        ]
    return differences


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _format_items(items: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{item.get('path')}: {item.get('reason')}" for item in items)
