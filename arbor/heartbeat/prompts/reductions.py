"""Reductions of a situation: lists that can be shortened and percepts that can be clipped, the least important first.

Whole entries are dropped. Messages and urgent percepts are only clipped; other percepts wait for the next heartbeat. So do signals,
except those of the source that has waited longest, which are only shortened.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from arbor.goals.plans import OPEN_STEPS
from arbor.goals.values import GoalState
from arbor.heartbeat.prompts.token_shares import PromptSide
from arbor.heartbeat.situation import PEER_MESSAGE, USER_MESSAGE, PerceptView, Situation
from arbor.heartbeat.views import SubscribedSignal
from arbor.models.token_counts import CountTokens
from arbor.models.token_estimates import CHARACTERS_PER_TOKEN, estimate_tokens
from arbor.quotations import line

# Tokens of an entry's id, date and punctuation.
_ENTRY_OVERHEAD = 20
# The most characters that a section shows of an entry (`arbor.heartbeat.prompts.sections`).
_ENTRY_CHARACTERS = 1_280
#: Characters of a clipped percept, and of a clipped message.
CLIPPED_PERCEPT = 600
CLIPPED_MESSAGE = 1_990


@dataclass(frozen=True, kw_only=True, slots=True)
class ShortenedList:
    """A list of the situation that can be shortened, and the section that shows it."""

    section: str
    entries: Callable[[Situation], list[Any]]
    put: Callable[[Situation, list[Any]], Situation]
    #: The indexes of droppable entries, the least important first.
    order: Callable[[list[Any]], Sequence[int]]

    def lighten(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Drop entries for the excess of tokens, at least one; return their number."""
        entries = self.entries(situation)
        gone: set[int] = set()
        for place in self.order(entries):
            gone.add(place)
            excess -= _size(entries[place], count)
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

    def lighten(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
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
            excess -= count(whole.content) - count(percepts[place].content)
            if excess <= 0:
                break
        return (situation.model_copy(update={"percepts": percepts}) if long else situation), 0

    def _length_of(self, text: str) -> int:
        """Return the length in characters of this text that takes as many tokens as `length` of plain ASCII."""
        return int(self.length * len(text) / (CHARACTERS_PER_TOKEN * max(estimate_tokens(text), 1)))


class SignalShed:
    """Leaves the signals of all sources but the first for the next heartbeat, and shortens those of the first to one line."""

    section = "signals"

    def lighten(self, situation: Situation, excess: int, count: CountTokens) -> tuple[Situation, int]:
        """Drop the last source, then all subjects, then all lines but one for all names; return the number of dropped lines."""
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
    """Return one entry for the signals of a source."""
    return SubscribedSignal(
        name=", ".join(signal.name for signal in signals),
        source=signals[0].source,
        count=sum(signal.count for signal in signals),
        at=max(signal.at for signal in signals),
    )


# Longer than the note that `line` adds to a cut text.
_CLIP_NOTE = 60


def _is_ordinary(percept: PerceptView) -> bool:
    return not percept.urgent and percept.kind not in (USER_MESSAGE, PEER_MESSAGE)


def _is_not_users(percept: PerceptView) -> bool:
    return not _is_users(percept)


def _is_users(percept: PerceptView) -> bool:
    return percept.kind == USER_MESSAGE


def _size(entry: Any, count: CountTokens) -> int:
    """Return about the tokens of an entry, as far as it is shown."""
    texts = [entry] if isinstance(entry, str) else [text for _, text in entry if isinstance(text, str)]
    tokens = sum(count(text) for text in texts)
    shown = _ENTRY_CHARACTERS / max(sum(map(len, texts)), 1)
    return int(tokens * min(1.0, shown)) + _ENTRY_OVERHEAD


def _last_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, -1, -1)


def _first_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries))


def _but_the_first(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, 0, -1)


def _but_the_first_two(entries: list[Any]) -> Sequence[int]:
    return range(len(entries) - 1, 1, -1)


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


def _listed(
    name: str,
    order: Callable[[list[Any]], Sequence[int]],
    section: str = "",
) -> ShortenedList:
    """Return the reduction of a list of the situation, shown by the section of the same name by default."""
    return ShortenedList(
        section=section or name,
        entries=lambda situation: list(getattr(situation, name)),
        put=lambda situation, remaining: situation.model_copy(update={name: remaining}),
        order=order,
    )


def _percepts() -> ShortenedList:
    """Return the reduction of the percepts and of their boundary matches."""

    def put(situation: Situation, remaining: list[Any]) -> Situation:
        gone = {percept.id for percept in situation.percepts} - {percept.id for percept in remaining}
        crossed = [crossing for crossing in situation.crossed if crossing.about not in gone]
        return situation.model_copy(update={"percepts": remaining, "crossed": crossed})

    return ShortenedList(
        section="percepts",
        entries=lambda situation: list(situation.percepts),
        put=put,
        order=_ordinary_last_first,
    )


def _on_mind(name: str, order: Callable[[list[Any]], Sequence[int]]) -> ShortenedList:
    """Return the reduction of a list of the working memory."""
    return ShortenedList(
        section="working_memory",
        entries=lambda situation: list(getattr(situation.working_memory, name)),
        put=lambda situation, remaining: situation.model_copy(
            update={"working_memory": situation.working_memory.model_copy(update={name: remaining})}
        ),
        order=order,
    )


def _steps() -> ShortenedList:
    """Return the reduction of the steps of the shown plan: completed ones first, then the last; the next two stay."""

    def put(situation: Situation, remaining: list[Any]) -> Situation:
        shown = situation.shown_plan
        plans = [
            plan.model_copy(update={"steps": remaining}) if plan is shown else plan
            for plan in situation.plans
        ]
        return situation.model_copy(update={"plans": plans})

    def order(steps: list[Any]) -> Sequence[int]:
        done = [place for place, step in enumerate(steps) if step.status not in OPEN_STEPS]
        following = [place for place, step in enumerate(steps) if step.status in OPEN_STEPS]
        return [*done, *reversed(following[2:])]

    return ShortenedList(
        section="plan",
        entries=lambda situation: list(situation.shown_plan.steps) if situation.shown_plan else [],
        put=put,
        order=order,
    )


def _outcomes() -> ShortenedList:
    return ShortenedList(
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
SHEDS: Mapping[PromptSide, tuple[ShortenedList | Clip | SignalShed, ...]] = {
    PromptSide.IDENTITY: (
        _listed("capabilities", _last_first),
        _listed("preferences", _last_first),
        _listed("beliefs", _but_the_first_two),
        _listed("aspects", _but_the_first_two, section="identity"),
        _listed("beliefs", _last_first),
        _listed("aspects", _but_the_first, section="identity"),
    ),
    PromptSide.MEMORY: (
        _listed("held", _last_first),
        _listed("clusters", _last_first),
        _listed("experiences", _last_first),
        _on_mind("thoughts", _first_first),
        _on_mind("curiosity", _but_the_last),
        _on_mind("concerns", _but_the_last),
        _listed("recent", _but_the_last),
        _listed("relevant", _but_the_first),
    ),
    PromptSide.WORLD_STATE: (
        _listed("peers", _last_first),
        SignalShed(),
        _listed("issues", _last_first),
        _listed("approvals", _last_first),
        _listed("contradictions", _but_the_first),
        _listed("notices", _but_the_first),
        _listed("proposals", _but_the_first),
        Clip(of=_is_ordinary, length=CLIPPED_PERCEPT),
        Clip(of=_is_not_users, length=CLIPPED_MESSAGE),
        _percepts(),
        _steps(),
        _listed("goals", _goals_in_order),
        _listed("intents", _but_the_first),
        _listed("contradictions", _last_first),
        _listed("proposals", _last_first),
        _listed("notices", _last_first),
        # Last resort: no model accepts a prompt that is too long.
        Clip(of=_is_users, length=CLIPPED_MESSAGE),
    ),
    PromptSide.ACTION_HISTORY: (
        _listed("tallies", _last_first),
        _listed("handlers", _last_first),
        _listed("publications", _last_first),
        _listed("precedents", _but_the_first),
        _listed("attempts", _but_the_first),
        _outcomes(),
        _listed("precedents", _last_first),
        _listed("attempts", _last_first),
    ),
}
