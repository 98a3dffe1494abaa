"""Experiences: lessons made by rule from the outcomes of actions (seed 003, 3.4)."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

#: The length of a line in the prompt.
LESSON_LENGTH = 300
ABOUT_LENGTH = 200
#: Experiences of an agent (a year of a busy one); older ones are deleted, on record.
MOST_KEPT = 2_000


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
        return _shorten(f"Avoid doing {what} the same way again: {summary}")
    if outcome is ExperienceOutcome.PARTIAL:
        return _shorten(f"Do {what} differently next time: {summary}")
    if outcome is ExperienceOutcome.SUCCESS and (successes == 0 or successes * 2 < attempts):
        return _shorten(f"Do {what} again when it is called for: it worked: {summary}")
    return ""


def _shorten(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= LESSON_LENGTH else f"{text[: LESSON_LENGTH - 1]}…"
