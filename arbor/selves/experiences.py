"""Experiences by rule: lessons from the outcomes of actions (seed 003, 3.4), and habits (the origin of seed 000)."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from arbor.quotations import clip_line

#: The length of a line in the prompt.
LESSON_LENGTH = 300
ABOUT_LENGTH = 200
#: Experiences of an agent (a year of a busy one); the deletion of older ones is audited.
MAX_EXPERIENCES = 2_000


class ExperienceOutcome(StrEnum):
    """The outcome of an action (seed 003, 3.4)."""

    SUCCESS = "success"
    FAILURE = "failure"
    PARTIAL = "partial"
    UNKNOWN = "unknown"


@dataclass(frozen=True, kw_only=True, slots=True)
class NewExperience:
    """An action that was paid for: its subject, outcome, and lesson, if any."""

    action: str
    about: str
    outcome: ExperienceOutcome
    lesson: str


def lesson(
    *, action: str, about: str, outcome: ExperienceOutcome, summary: str, attempts: int, successes: int
) -> str:
    """Return the lesson of an action; empty for the usual outcome.

    `attempts` and `successes` count the action's earlier runs. A failure teaches what to avoid, a partial success what
    to do differently, and a success what to do again, if it was the first, or if the action mostly fails.
    """
    what = f"{action.replace('_', ' ')} ({about})" if about else action.replace("_", " ")
    if outcome is ExperienceOutcome.FAILURE:
        return clip_line(f"Avoid doing {what} the same way again: {summary}", LESSON_LENGTH)
    if outcome is ExperienceOutcome.PARTIAL:
        return clip_line(f"Do {what} differently next time: {summary}", LESSON_LENGTH)
    if outcome is ExperienceOutcome.SUCCESS and (successes == 0 or successes * 2 < attempts):
        return clip_line(f"Do {what} again when it is called for: it worked: {summary}", LESSON_LENGTH)
    return ""


#: A pattern is two to four actions in a row that occur at least three times among the last fifty.
MIN_PATTERN_LENGTH = 2
MAX_PATTERN_LENGTH = 4
MIN_REPEATS = 3
MAX_ACTIONS_READ = 50


@dataclass(frozen=True, kw_only=True, slots=True)
class Pattern:
    """A sequence of actions and its count; `key` identifies the sequence.

    Rotations of one sequence have the same key.
    """

    actions: tuple[str, ...]
    count: int

    @property
    def key(self) -> str:
        """Return the identity of the sequence."""
        rotations = (self.actions[at:] + self.actions[:at] for at in range(len(self.actions)))
        return ">".join(min(rotations))

    @property
    def confidence(self) -> float:
        """Return the confidence that the sequence is a habit, 0 to 1: .5 at three times, towards 1."""
        return round(1 - 1.5 / self.count, 3)

    def describe(self, *, always_worked: bool = False) -> str:
        """Return the text of the proposed memory."""
        steps = ", then ".join(action.replace("_", " ") for action in self.actions)
        opening = "What works for me" if always_worked else "When I act I often do this"
        return f"{opening}: {steps} ({self.count} times)."


def patterns(actions: Sequence[str | None]) -> list[Pattern]:
    """Return repeated sequences, the longest first; `actions` are the latest, oldest first.

    None is a gap that no sequence spans. A single repeated action is no pattern, and a part of a longer pattern with the
    same count is left out.
    """
    latest = actions[-MAX_ACTIONS_READ:]
    repeated = [
        pattern
        for length in range(MIN_PATTERN_LENGTH, MAX_PATTERN_LENGTH + 1)
        for pattern in _repeated(latest, length)
    ]
    repeated.sort(key=lambda pattern: (-len(pattern.actions), -pattern.count, pattern.actions))
    distinct: dict[str, Pattern] = {}
    for pattern in repeated:
        part = any(
            other.count >= pattern.count and _contains(pattern.actions, other.actions)
            for other in distinct.values()
        )
        if not part:
            distinct.setdefault(pattern.key, pattern)
    return [*distinct.values()]


def _repeated(actions: Sequence[str | None], length: int) -> Iterator[Pattern]:
    """Yield the patterns of a length; overlapping equal sequences count once."""
    places = defaultdict[tuple[str | None, ...], list[int]](list)
    for place, sequence in enumerate(zip(*(actions[at:] for at in range(length)), strict=False)):
        places[sequence].append(place)
    for sequence, found_at in places.items():
        # Most sequences are rare.
        if len(found_at) < MIN_REPEATS or len(set(sequence)) == 1:
            continue
        names = tuple(action for action in sequence if action is not None)
        count = _count_apart(found_at, length)
        if len(names) == length and count >= MIN_REPEATS:
            yield Pattern(actions=names, count=count)


def _count_apart(places: Iterable[int], length: int) -> int:
    """Count the places, in order, that are at least a length apart."""
    count = free_from = 0
    for place in places:
        if place >= free_from:
            count, free_from = count + 1, place + length
    return count


def _contains(part: tuple[str, ...], whole: tuple[str, ...]) -> bool:
    return any(whole[at : at + len(part)] == part for at in range(len(whole) - len(part) + 1))
