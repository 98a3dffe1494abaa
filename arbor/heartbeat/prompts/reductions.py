"""Reductions of a situation: lists that can be shortened and percepts that can be clipped, the least important first.

Whole entries are dropped; where few are left of the state of the world, their texts are shortened first. Messages and
urgent percepts are only clipped; other percepts wait for the next heartbeat. So do signals, except those of the source that
has waited longest, which are only shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Any, NamedTuple, Protocol

from pydantic import BaseModel

from arbor.goals.plans import OPEN_STEPS
from arbor.goals.values import GoalState
from arbor.heartbeat.prompts.token_shares import PromptSide
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView, Situation
from arbor.heartbeat.views import SubscribedSignal
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN, estimate_tokens
from arbor.quotations import line, shorten

# Tokens of an entry's id, date and punctuation.
_ENTRY_OVERHEAD = 20
# The most characters that a section shows of an entry (`arbor.heartbeat.prompts.sections`).
_ENTRY_CHARACTERS = 1_280
#: Characters of a clipped percept, and of a clipped message.
CLIPPED_PERCEPT = 600
CLIPPED_MESSAGE = 1_990
#: Characters of each text of an entry whose texts are shortened.
SHORT_TEXT = 160
# Longer than the note that `line` adds to a cut text.
_CLIP_NOTE = 60


#: The indexes of droppable entries, the least important first.
type Order = Callable[[list[Any]], Iterable[int]]


class Reduction(Protocol):
    """A way to shorten a situation by one side of its prompt."""

    @property
    def section(self) -> str: ...

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Return the situation without an excess of tokens, as far as possible, and the number of dropped entries.

        A situation that cannot be reduced is returned as it is.
        """
        ...


class ShortenedList(NamedTuple):
    """A list of the situation that can be shortened, by its path, and the section that shows it."""

    path: str
    order: Order
    shown_by: str = ""

    @property
    def section(self) -> str:
        return self.shown_by or self.path.partition(".")[0]

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Drop entries for the excess of tokens, at least one; return the situation without them, and their number."""
        entries: Any = situation
        for name in self.path.split("."):
            entries = getattr(entries, name, ())
        entries, gone = list(entries), set[int]()
        for place in self.order(entries):
            gone.add(place)
            excess -= _size(entries[place], count)
            if excess <= 0:
                break
        if not gone:
            return situation, 0
        remaining = [entry for place, entry in enumerate(entries) if place not in gone]
        return with_part(situation, self.path, remaining), len(gone)


class ShortenedTexts(NamedTuple):
    """A part of the situation whose texts can be shortened, by its path, and the section that shows it."""

    path: str
    shown_by: str = ""

    @property
    def section(self) -> str:
        return self.shown_by or self.path.partition(".")[0]

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Shorten all texts of the part; no entry is dropped."""
        part = attrgetter(self.path)(situation)
        short = _with_short_texts(part)
        return (situation if short == part else with_part(situation, self.path, short)), 0


def _with_short_texts(value: Any) -> Any:
    """Return a value with each text in it shortened; ids and names of kinds are shorter anyway."""
    match value:
        case str():
            return shorten(value, SHORT_TEXT)
        case list():
            return [_with_short_texts(entry) for entry in value]
        case BaseModel():
            return value.model_copy(update={name: _with_short_texts(entry) for name, entry in value})
        case _:
            return value


class Clip(NamedTuple):
    """Clips the longest percepts of some kind."""

    of: Callable[[PerceptView], bool]
    length: int
    section: str = "percepts"

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Clip percepts for the excess of tokens, the longest first; no entry is dropped."""
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
            excess -= count(whole.content) - count(short)
            if excess <= 0:
                break
        return (situation.model_copy(update={"percepts": percepts}) if long else situation), 0

    def _length_of(self, text: str) -> int:
        """Return how many characters of this text take as many tokens as `length` characters of plain ASCII."""
        return int(self.length * len(text) / (CHARACTERS_PER_TOKEN * max(estimate_tokens(text), 1)))


class SignalReduction:
    """Leaves the signals of all sources but the first for the next heartbeat, and shortens those of the first to one line."""

    section = "signals"

    def reduce(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Drop the last source, or else all subjects, or else merge the lines; return the situation, and the number of lines of a dropped source."""
        signals, sources = situation.signals, signal_sources(situation)
        if len(sources) > 1:
            shorter = [signal for signal in signals if signal.source != sources[-1]]
            return situation.model_copy(update={"signals": shorter}), len(signals) - len(shorter)
        if any(signal.subjects for signal in signals):
            shorter = [signal.model_copy(update={"subjects": []}) for signal in signals]
        elif len(signals) > 1:
            shorter = [_one_line(signals)]
        else:
            return situation, 0
        return situation.model_copy(update={"signals": shorter}), 0


def signal_sources(situation: Situation) -> list[str]:
    """Return the sources of the signals, in order."""
    return [*dict.fromkeys(signal.source for signal in situation.signals)]


def _one_line(signals: Sequence[SubscribedSignal]) -> SubscribedSignal:
    return SubscribedSignal(
        name=", ".join(signal.name for signal in signals),
        source=signals[0].source,
        count=sum(signal.count for signal in signals),
        at=max(signal.at for signal in signals),
    )


def _is_ordinary(percept: PerceptView) -> bool:
    return not percept.urgent and percept.kind not in (USER_MESSAGE, PEER_MESSAGE)


def _size(entry: Any, count: CountTokens) -> int:
    """Estimate the tokens of an entry, as far as it is shown."""
    texts = [entry] if isinstance(entry, str) else [text for _, text in entry if isinstance(text, str)]
    tokens = sum(count(text) for text in texts)
    shown = _ENTRY_CHARACTERS / max(sum(map(len, texts)), 1)
    return int(tokens * min(1.0, shown)) + _ENTRY_OVERHEAD


def with_part(situation: Situation, path: str, value: Any) -> Situation:
    """Return the situation with another value of a part; boundary matches of dropped percepts are dropped too."""
    part, _, name = path.rpartition(".")
    if path == "percepts":
        gone = {percept.id for percept in situation.percepts} - {percept.id for percept in value}
        matches = [match for match in situation.boundary_matches if match.about not in gone]
        return situation.model_copy(update={"percepts": value, "boundary_matches": matches})
    if part == "shown_plan":
        shown = situation.shown_plan
        plans = [plan.model_copy(update={name: value}) if plan is shown else plan for plan in situation.plans]
        return situation.model_copy(update={"plans": plans})
    changed = getattr(situation, part).model_copy(update={name: value}) if part else value
    return situation.model_copy(update={part or name: changed})


def last_first(keep: int = 0) -> Order:
    """Return the order from the last entry on, which leaves the first `keep`."""
    return lambda entries: range(len(entries) - 1, keep - 1, -1)


def first_first(keep: int = 0) -> Order:
    """Return the order from the first entry on, which leaves the last `keep`."""
    return lambda entries: range(len(entries) - keep)


def _ordinary_last_first(percepts: list[Any]) -> Iterable[int]:
    """Return the order of ordinary percepts, the newest first; the first of all stays, so that each is shown some time."""
    return [place for place in last_first(1)(percepts) if _is_ordinary(percepts[place])]


def _goals_in_order(goals: list[Any]) -> Iterable[int]:
    """Return the order of goals: queued before active ones, by priority, of equal ones the last; the most important one stays."""
    shown = [place for place, goal in enumerate(goals) if goal.state in (GoalState.ACTIVE, GoalState.QUEUED)]
    shown.sort(key=lambda place: (goals[place].state is GoalState.ACTIVE, goals[place].priority, -place))
    return shown[:-1]


def ended_first(keep: int) -> Order:
    """Return the order of steps: ended ones, then the last open ones; the next `keep` open ones stay."""

    def order(steps: list[Any]) -> Iterable[int]:
        ended = [place for place, step in enumerate(steps) if step.status not in OPEN_STEPS]
        following = [place for place, step in enumerate(steps) if step.status in OPEN_STEPS]
        return [*ended, *reversed(following[keep:])]

    return order


# The reductions of each side, the least important first.
REDUCTIONS: Mapping[PromptSide, tuple[Reduction, ...]] = {
    PromptSide.IDENTITY: (
        ShortenedList("capabilities", last_first()),
        ShortenedList("preferences", last_first()),
        ShortenedList("beliefs", last_first(2)),
        ShortenedList("aspects", last_first(2), "identity"),
        ShortenedList("beliefs", last_first()),
        ShortenedList("aspects", last_first(1), "identity"),
    ),
    PromptSide.MEMORY: (
        ShortenedList("held", last_first()),
        ShortenedList("clusters", last_first()),
        ShortenedList("experiences", last_first()),
        ShortenedList("working_memory.thoughts", first_first()),
        ShortenedList("working_memory.curiosity", first_first(1)),
        ShortenedList("working_memory.concerns", first_first(1)),
        ShortenedList("recent", first_first(1)),
        ShortenedList("relevant", last_first(1)),
    ),
    PromptSide.WORLD_STATE: (
        ShortenedList("peers", last_first()),
        SignalReduction(),
        ShortenedList("issues", last_first()),
        ShortenedList("approvals", last_first()),
        ShortenedList("contradictions", last_first(1)),
        ShortenedList("notices", last_first(1)),
        ShortenedList("proposals", last_first(1)),
        Clip(_is_ordinary, CLIPPED_PERCEPT),
        Clip(lambda percept: percept.kind != USER_MESSAGE, CLIPPED_MESSAGE),
        ShortenedList("percepts", _ordinary_last_first),
        ShortenedList("shown_plan.steps", ended_first(2), "plan"),
        ShortenedList("goals", _goals_in_order),
        ShortenedList("intents", last_first(1)),
        ShortenedTexts("plans", "plan"),
        ShortenedTexts("goals"),
        ShortenedTexts("intents"),
        ShortenedTexts("contradictions"),
        ShortenedTexts("proposals"),
        ShortenedList("contradictions", last_first()),
        ShortenedList("proposals", last_first()),
        ShortenedList("notices", last_first()),
        # Last resort: no model accepts a prompt that is too long.
        Clip(lambda percept: percept.kind == USER_MESSAGE, CLIPPED_MESSAGE),
    ),
    PromptSide.ACTION_HISTORY: (
        ShortenedList("tallies", last_first()),
        ShortenedList("handlers", last_first()),
        ShortenedList("publications", last_first()),
        ShortenedList("precedents", last_first(1)),
        ShortenedList("attempts", last_first(1)),
        ShortenedList("last_heartbeat.outcomes", first_first()),
        ShortenedList("precedents", last_first()),
        ShortenedList("attempts", last_first()),
    ),
}
