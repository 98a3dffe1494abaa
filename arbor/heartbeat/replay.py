"""A recorded heartbeat decided once more: from what it saw and what its model answered, to what it did, or what differs."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from arbor.errors import ReplyInvalid
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import budget_of
from arbor.heartbeat.decision import Decision, Verdict, decide
from arbor.heartbeat.guarding import not_taken, reply_within_boundaries, within_boundaries
from arbor.heartbeat.parsing import parse_reply
from arbor.heartbeat.prompt import Prompt, build_prompt
from arbor.heartbeat.reply import Reply
from arbor.heartbeat.situation import Environment, Situation
from arbor.heartbeat.turns import merge_replies, within_beat
from arbor.selves.boundary_check import BoundaryRule

#: What of a decision is compared; its results are not decided, they happened.
_COMPARED = ("action", "params", "verdict", "reason", "goal_id", "intent_id")
#: Lines around a difference between two texts that are shown.
_AROUND = 1


@dataclass(frozen=True, kw_only=True)
class RecordedBeat:
    """All that is kept of a heartbeat, as far as deciding it again needs it."""

    situation: Situation
    #: The prompt's sections as they were sent: [(name, text)].
    sections: Sequence[tuple[str, str]]
    #: What its model answered, in order; also what could not be read.
    replies: Sequence[str]
    #: `Heartbeat.actions`, `dropped` and `repairs`.
    actions: Sequence[Mapping[str, Any]]
    dropped: Sequence[Mapping[str, Any]]
    repairs: Sequence[str]
    #: The model's window and what its reply may take of it, in tokens.
    window: int
    reply_tokens: int
    #: Its own boundaries and those that every agent has.
    boundaries: Sequence[BoundaryRule] = ()
    #: Why it was too soon to reach out, by action, in a situation.
    cooling: Callable[[Environment], Mapping[str, str]] = field(default=lambda _: {})


@dataclass(frozen=True, kw_only=True)
class Difference:
    """Something that came out otherwise; `diff` is for a person."""

    #: `prompt: NAME`, `action 2: verdict`, `dropped`, `repairs`, `replies`.
    where: str
    recorded: str
    replayed: str

    @property
    def diff(self) -> str:
        """Return the difference line by line: `-` recorded, `+` replayed."""
        lines = difflib.unified_diff(
            self.recorded.splitlines(), self.replayed.splitlines(), lineterm="", n=_AROUND
        )
        return "\n".join(line for line in lines if not line.startswith(("---", "+++", "@@")))


@dataclass(frozen=True, kw_only=True)
class Replay:
    """What came of deciding a beat again."""

    differences: Sequence[Difference]
    decisions: Sequence[Decision]
    #: What could not be compared, or was taken as recorded, and why.
    notes: Sequence[str]

    @property
    def is_same(self) -> bool:
        """Tell whether everything that was compared came out as recorded."""
        return not self.differences


def replay(beat: RecordedBeat) -> Replay:
    """Build the prompt, read the replies and decide again, and compare each with what is on record. It changes nothing."""
    notes: list[str] = []
    differences = [*_compare_prompt(beat, notes)]
    turns, dropped, repairs, unreadable = _read(beat.replies, beat.boundaries)
    if unreadable:
        notes.append(f"{unreadable} replies could not be read, and were asked for again, as in the beat")
    decisions = [*_decide_turns(beat, turns, notes)]
    differences += _compare_decisions(beat.actions, decisions)
    lost = [each for each in dropped if each not in beat.dropped]
    later = [each for each in beat.dropped if each not in dropped]
    if lost:
        differences.append(_differing("dropped", _listed(beat.dropped), _listed(dropped)))
    elif later:
        notes.append(f"{len(later)} items were set aside after the reply was read; that is not replayed")
    if list(beat.repairs) != repairs:
        differences.append(_differing("repairs", "\n".join(beat.repairs), "\n".join(repairs)))
    return Replay(differences=differences, decisions=decisions, notes=notes)


def decide_reply(beat: RecordedBeat, text: str) -> tuple[Decision, ...]:
    """Return what would be decided about another reply to the beat's prompt. Raises ReplyInvalid."""
    return _decide(beat, parse_reply(text).reply, beat.situation.energy, taken=())


def prompt_of(beat: RecordedBeat) -> Prompt | None:
    """Return the prompt built anew with the recorded mark; None when the record has none."""
    recorded = dict(beat.sections)
    mark = recorded.get("mark", "").rpartition(" ")[2].rstrip(".")
    if not mark:
        return None
    return build_prompt(
        _as_offered(beat.situation),
        recorded.get("character", ""),
        nonce=mark,
        window=beat.window,
        reply_tokens=beat.reply_tokens,
    )


def _as_offered(situation: Situation) -> Situation:
    """Return the situation as its prompt was made from: with what had no room in it, and today's order of parameters.

    A record keeps no order of them.
    """
    offers = []
    for offer in situation.actions:
        spec = ACTIONS.get(offer.name)
        order = list(spec.params.model_fields) if spec is not None else []
        place = {name: number for number, name in enumerate(order)}
        params = dict(sorted(offer.params.items(), key=lambda item: place.get(item[0], len(place))))
        offers.append(offer.model_copy(update={"params": params}))
    reached = sorted([*situation.percepts, *situation.waiting], key=lambda percept: percept.at)
    return situation.model_copy(update={"actions": offers, "percepts": reached, "waiting": []})


def _compare_prompt(beat: RecordedBeat, notes: list[str]) -> list[Difference]:
    prompt = prompt_of(beat)
    if prompt is None:
        notes.append("the prompt is not compared: the record of its call has no sections")
        return []
    recorded = dict(beat.sections)
    built = {section.name: section.text for section in prompt.sections}
    return [
        _differing(f"prompt: {name}", recorded.get(name, ""), built.get(name, ""))
        for name in dict.fromkeys([*recorded, *built])
        if recorded.get(name, "") != built.get(name, "")
    ]


def _read(
    replies: Sequence[str], boundaries: Sequence[BoundaryRule]
) -> tuple[list[Reply], list[dict[str, Any]], list[str], int]:
    """Return the readable replies, one per turn, with what was dropped from and mended in them."""
    turns: list[Reply] = []
    earlier: Reply | None = None
    dropped: list[dict[str, Any]] = []
    repairs: list[str] = []
    unreadable = 0
    for text in replies:
        try:
            parsed = parse_reply(text)
        except ReplyInvalid:
            unreadable += 1
            continue
        reply, left_over = within_beat(earlier, parsed.reply)
        reply, crossings = reply_within_boundaries(reply, boundaries)
        dropped += [
            {"path": each.path, "value": each.value, "reason": each.reason}
            for each in (*parsed.dropped, *left_over, *not_taken(crossings))
        ]
        repairs += parsed.repairs
        turns.append(reply)
        earlier = merge_replies(earlier, reply)
    return turns, dropped, repairs, unreadable


def _decide_turns(beat: RecordedBeat, turns: Sequence[Reply], notes: list[str]) -> list[Decision]:
    """Decide each turn with the energy that the recorded actions of the turns before it have left."""
    decisions: list[Decision] = []
    left = beat.situation.energy
    for reply in turns:
        start = len(decisions)
        taken = beat.actions[start : start + len(reply.actions)]
        made = _decide(beat, reply, left, taken=taken)
        if any(each.verdict is Verdict.BOUNDARY and each.crossed for each in made) and _by_meaning(taken):
            notes.append("a boundary crossed by meaning is taken as recorded: nothing is embedded here")
        decisions += made
        left = max(0.0, left - sum(float(each.get("cost") or 0) for each in taken))
    return decisions


def _decide(
    beat: RecordedBeat, reply: Reply, energy: float, *, taken: Sequence[Mapping[str, Any]]
) -> tuple[Decision, ...]:
    terms = beat.situation.terms
    decisions = decide(
        reply.actions,
        registry=ACTIONS,
        allowed=terms.allowed if terms else [offer.name for offer in beat.situation.actions],
        energy=energy,
        budget=budget_of(terms.budget if terms else "energy", terms.allowance if terms else None),
        missing=terms.missing if terms else {},
        cooling=beat.cooling(beat.situation.environment),
        guarded=partial(within_boundaries, boundaries=beat.boundaries, vectors={}),
    )
    return tuple(
        _as_meant(decision, taken[place] if place < len(taken) else {})
        for place, decision in enumerate(decisions)
    )


def _as_meant(decision: Decision, entry: Mapping[str, Any]) -> Decision:
    """Return the decision, refused if the record says that it crossed a boundary by its meaning."""
    if (
        not decision.runs
        or entry.get("verdict") != Verdict.BOUNDARY
        or entry.get("action") != decision.action
    ):
        return decision
    return decision.model_copy(
        update={"verdict": Verdict.BOUNDARY, "reason": str(entry.get("reason", "")), "cost": 0}
    )


def _by_meaning(taken: Sequence[Mapping[str, Any]]) -> bool:
    return any(entry.get("verdict") == Verdict.BOUNDARY for entry in taken)


def _compare_decisions(
    recorded: Sequence[Mapping[str, Any]], decisions: Sequence[Decision]
) -> list[Difference]:
    differences = []
    for place in range(max(len(recorded), len(decisions))):
        if place >= len(recorded):
            differences.append(_differing(f"action {place + 1}", "", decisions[place].action))
        elif place >= len(decisions):
            differences.append(_differing(f"action {place + 1}", str(recorded[place].get("action")), ""))
        else:
            made = decisions[place].model_dump(mode="json")
            differences += [
                _differing(f"action {place + 1}: {name}", _text(recorded[place][name]), _text(made[name]))
                for name in _COMPARED
                if name in recorded[place] and recorded[place][name] != made[name]
            ]
    return differences


def _differing(where: str, recorded: str, replayed: str) -> Difference:
    return Difference(where=where, recorded=recorded, replayed=replayed)


def _text(value: Any) -> str:
    return value if isinstance(value, str) else repr(value)


def _listed(items: Sequence[Mapping[str, Any]]) -> str:
    return "\n".join(f"{each.get('path')}: {each.get('reason')}" for each in items)
