"""Fitting of a situation into its prompt: the least important entries of each side are clipped or dropped first.

Whole entries are dropped. Messages and urgent percepts are only clipped; other percepts wait for the next heartbeat.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from arbor.goals.values import GoalState
from arbor.heartbeat.quotations import RenderedSection, line
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView, Situation
from arbor.heartbeat.working_memory import CHARACTERS_PER_TOKEN

_TOKENS_PER_FURTHER_BYTE = 0.4
#: The largest share of the model's window that is reserved for the reply.
REPLY_SHARE = 0.25
#: The least part of its share that a side keeps in a small window.
LEAST_SCALE = 0.1


class Side(StrEnum):
    """The parts of a prompt with a token share."""

    IDENTITY = "identity"
    MEMORY = "memory"
    WORLD_STATE = "world_state"
    ACTION_HISTORY = "action_history"


#: Tokens (seed 003, 10.6); the remainder is for the reply.
SHARES: Mapping[Side, int] = {
    Side.IDENTITY: 500,
    Side.MEMORY: 2_000,
    Side.WORLD_STATE: 1_500,
    Side.ACTION_HISTORY: 1_000,
}

_SIDE_OF: Mapping[str, Side] = {
    **dict.fromkeys(("identity", "beliefs", "preferences", "capabilities"), Side.IDENTITY),
    **dict.fromkeys(("recent", "relevant", "themes", "held", "working_memory", "experiences"), Side.MEMORY),
    "last_beat": Side.ACTION_HISTORY,
}
#: Short sections that are never cut.
_WHOLE = frozenset(
    {"mark", "timing", "energy", "directive", "mood", "drives", "boundaries", "further_keys", "closing"}
)


def side_of(section: str) -> Side | None:
    """Return the side of a section; None for a section that is never cut."""
    return None if section in _WHOLE else _SIDE_OF.get(section, Side.WORLD_STATE)


def estimate_tokens(text: str) -> int:
    """Return the estimated tokens of a text, by its script.

    About 4 ASCII characters are a token. A character of two bytes in UTF-8 (Cyrillic, Greek, Arabic) counts for two thirds of one, of
    three (Chinese, Japanese, Devanagari) for one, of four (emoji) for one and a half: tokenizers join few of them.
    """
    tokens = len(text) / CHARACTERS_PER_TOKEN
    if not text.isascii():
        tokens += _TOKENS_PER_FURTHER_BYTE * (len(text.encode(errors="surrogatepass")) - len(text))
    return math.ceil(tokens)


def shares(*, window: int, fixed: int, reply: int) -> Mapping[Side, int]:
    """Return the tokens of each side, scaled down for a small window.

    All in tokens: `window` of the model, `fixed` of the unchanging part, `reply` of the longest reply.
    """
    room = room_of(window=window, fixed=fixed, reply=reply)
    wanted = sum(SHARES.values())
    if room >= wanted:
        return SHARES
    scale = max(room / wanted, LEAST_SCALE)
    return {side: int(share * scale) for side, share in SHARES.items()}


def room_of(*, window: int, fixed: int, reply: int) -> int:
    """Return the tokens for all sides together, after the fixed part and the reply."""
    return window - fixed - min(reply, int(window * REPLY_SHARE))


# Tokens of an entry's id, date and punctuation.
_ENTRY_OVERHEAD = 20
# The most characters that a section shows of an entry (`arbor.heartbeat.sections`).
_ENTRY_CHARACTERS = 1_280
#: Characters of a clipped percept, and of a clipped message.
CLIPPED_PERCEPT = 600
CLIPPED_MESSAGE = 1_990


@dataclass(frozen=True, kw_only=True, slots=True)
class Shed:
    """A list of the situation that can be shortened, and the section that shows it."""

    section: str
    entries: Callable[[Situation], list[Any]]
    put: Callable[[Situation, list[Any]], Situation]
    #: The indexes of droppable entries, the least important first.
    order: Callable[[list[Any]], Sequence[int]]

    def lighten(self, situation: Situation, excess: int) -> tuple[Situation, int]:
        """Drop entries for the excess of tokens, at least one; return their number."""
        entries = self.entries(situation)
        gone: set[int] = set()
        for place in self.order(entries):
            gone.add(place)
            excess -= _size(entries[place])
            if excess <= 0:
                break
        if not gone:
            return situation, 0
        remaining = [entry for place, entry in enumerate(entries) if place not in gone]
        return self.put(situation, remaining), len(gone)


@dataclass(frozen=True, kw_only=True, slots=True)
class Clip:
    """Clips the longest percepts of some kind."""

    section: str = "percepts"
    of: Callable[[PerceptView], bool]
    length: int

    def lighten(self, situation: Situation, excess: int) -> tuple[Situation, int]:
        """Clip percepts for the excess of tokens, the longest first."""
        percepts = list(situation.percepts)
        long = [
            place
            for place, percept in enumerate(percepts)
            if self.of(percept) and len(percept.content) > self._length_of(percept.content) + _CLIP_NOTE
        ]
        for place in sorted(long, key=lambda place: -len(percepts[place].content)):
            whole = percepts[place]
            short = line(whole.content, self._length_of(whole.content))
            percepts[place] = whole.model_copy(update={"content": short})
            excess -= estimate_tokens(whole.content) - estimate_tokens(percepts[place].content)
            if excess <= 0:
                break
        return (situation.model_copy(update={"percepts": percepts}) if long else situation), 0

    def _length_of(self, text: str) -> int:
        """Return the length in characters of this text that takes as many tokens as `length` of plain ASCII."""
        return int(self.length * len(text) / (CHARACTERS_PER_TOKEN * max(estimate_tokens(text), 1)))


# Longer than the note that `line` adds to a cut text.
_CLIP_NOTE = 60


def _is_ordinary(percept: PerceptView) -> bool:
    return not percept.urgent and percept.kind not in (USER_MESSAGE, PEER_MESSAGE)


def _is_not_users(percept: PerceptView) -> bool:
    return not _is_users(percept)


def _is_users(percept: PerceptView) -> bool:
    return percept.kind == USER_MESSAGE


def _size(entry: Any) -> int:
    """Return the estimated tokens of an entry."""
    texts = [entry] if isinstance(entry, str) else [text for _, text in entry if isinstance(text, str)]
    tokens = sum(estimate_tokens(text) for text in texts)
    longest = _ENTRY_CHARACTERS / max(sum(map(len, texts)), 1)
    return int(tokens * min(1.0, longest)) + _ENTRY_OVERHEAD


def _last_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, -1, -1)


def _first_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries))


def _but_the_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, 0, -1)


def _but_the_last(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1)


def _ordinary_last_first(entries: list[Any]) -> Sequence[int]:
    """Drop the newest ordinary percepts; the first of all stays, so that each is shown some time."""
    return [place for place in _but_the_first(entries) if _is_ordinary(entries[place])]


def _goals_in_order(entries: list[Any]) -> Sequence[int]:
    """Drop queued goals before active ones, by priority; the most important one stays."""
    shown = [
        (goal.state is GoalState.ACTIVE, goal.priority, place)
        for place, goal in enumerate(entries)
        if goal.state in (GoalState.ACTIVE, GoalState.QUEUED)
    ]
    return [place for *_, place in sorted(shown)[:-1]]


def _listed(name: str, order: Callable[[list[Any]], Sequence[int]], section: str = "") -> Shed:
    """Return the reduction of a list of the situation, shown by the section of the same name by default."""
    return Shed(
        section=section or name,
        entries=lambda situation: list(getattr(situation, name)),
        put=lambda situation, remaining: situation.model_copy(update={name: remaining}),
        order=order,
    )


def _percepts() -> Shed:
    """Return the reduction of the percepts and of their boundary matches."""

    def put(situation: Situation, remaining: list[Any]) -> Situation:
        gone = {percept.id for percept in situation.percepts} - {percept.id for percept in remaining}
        crossed = [crossing for crossing in situation.crossed if crossing.about not in gone]
        return situation.model_copy(update={"percepts": remaining, "crossed": crossed})

    return Shed(
        section="percepts",
        entries=lambda situation: list(situation.percepts),
        put=put,
        order=_ordinary_last_first,
    )


def _thoughts() -> Shed:
    return Shed(
        section="working_memory",
        entries=lambda situation: list(situation.working_memory.thoughts),
        put=lambda situation, remaining: situation.model_copy(
            update={"working_memory": situation.working_memory.model_copy(update={"thoughts": remaining})}
        ),
        order=_first_first,
    )


def _outcomes() -> Shed:
    return Shed(
        section="last_beat",
        entries=lambda situation: list(situation.last_beat.outcomes) if situation.last_beat else [],
        put=lambda situation, remaining: situation.model_copy(
            update={
                "last_beat": situation.last_beat
                and situation.last_beat.model_copy(update={"outcomes": remaining})
            }
        ),
        order=_first_first,
    )


# The reductions of each side, the least important first.
SHEDS: Mapping[Side, tuple[Shed | Clip, ...]] = {
    Side.IDENTITY: (
        _listed("capabilities", _last_first),
        _listed("preferences", _last_first),
        _listed("beliefs", _last_first),
        _listed("aspects", _but_the_first, section="identity"),
    ),
    Side.MEMORY: (
        _listed("held", _last_first),
        _listed("themes", _last_first),
        _listed("experiences", _last_first),
        _thoughts(),
        _listed("recent", _but_the_last),
        _listed("relevant", _but_the_first),
    ),
    Side.WORLD_STATE: (
        _listed("peers", _last_first),
        _listed("issues", _last_first),
        _listed("contradictions", _last_first),
        _listed("notices", _last_first),
        _listed("proposals", _last_first),
        Clip(of=_is_ordinary, length=CLIPPED_PERCEPT),
        Clip(of=_is_not_users, length=CLIPPED_MESSAGE),
        _percepts(),
        _listed("goals", _goals_in_order),
        _listed("intents", _but_the_first),
        # Last resort: no model accepts a prompt that is too long.
        Clip(of=_is_users, length=CLIPPED_MESSAGE),
    ),
    Side.ACTION_HISTORY: (_outcomes(),),
}


#: The share of the room that is redistributed to sides over their share; less than 1, for tokens are estimated.
SPARE_SHARE = 0.9


@dataclass(frozen=True, kw_only=True, slots=True)
class Fitted:
    """A situation cut to its prompt, and the number of dropped entries by section."""

    situation: Situation
    cut: Mapping[str, int] = field(default_factory=dict)


def fit(
    situation: Situation,
    allowed: Mapping[Side, int],
    render: Callable[[Situation], Sequence[RenderedSection]],
    *,
    room: int = 0,
) -> tuple[Fitted, Sequence[RenderedSection]]:
    """Drop the least important entries of each side that is over its share; return the remainder, rendered.

    `room` is in tokens, for all sides together: the unused part is redistributed to sides over their share. A
    situation that fits is rendered once and returned as it is.
    """
    spare = int(room * SPARE_SHARE)
    rendered = render(situation)
    over = _over(rendered, allowed, spare)
    if not over:
        return Fitted(situation=situation), rendered
    cut: dict[str, int] = {}
    for side in over:
        for shed in SHEDS[side]:
            while (excess := _over(rendered, allowed, spare).get(side, 0)) > 0:
                lighter, dropped = shed.lighten(situation, excess)
                if lighter is situation:
                    break
                situation = lighter
                if dropped:
                    cut[shed.section] = cut.get(shed.section, 0) + dropped
                rendered = render(situation)
    noted = [
        RenderedSection(section.name, f"{section.text}\nNot shown, for want of room: {cut[section.name]}.")
        if cut.get(section.name)
        else section
        for section in rendered
    ]
    return Fitted(situation=situation, cut=cut), noted


def _over(rendered: Sequence[RenderedSection], allowed: Mapping[Side, int], spare: int) -> dict[Side, int]:
    """Return the excess tokens of each side that is over its share and its part of the unused tokens."""
    used = dict.fromkeys(Side, 0)
    for section in rendered:
        side = side_of(section.name)
        if side is not None:
            used[side] += estimate_tokens(section.text)
        else:
            spare -= estimate_tokens(section.text)
    spare -= sum(min(used[side], allowed[side]) for side in Side)
    over: dict[Side, int] = {}
    for side in _SPARE_ORDER:
        excess = max(used[side] - allowed[side], 0)
        granted = min(excess, max(spare, 0))
        spare -= granted
        if excess > granted:
            over[side] = excess - granted
    return over


_SPARE_ORDER = (Side.WORLD_STATE, Side.MEMORY, Side.IDENTITY, Side.ACTION_HISTORY)
