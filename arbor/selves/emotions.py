"""An agent's mood: valence and arousal, moved by events, fading to a baseline (seed 004, 10.3)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

#: The half-lives of a mood's distance from its baseline: valence fades within a day, arousal sooner.
VALENCE_HALF_LIFE = timedelta(hours=6)
AROUSAL_HALF_LIFE = timedelta(hours=2)
#: The interval of heartbeats for which changes count in full (seed 004, 8.1).
FULL_AFTER = timedelta(hours=1)
#: The distance of arousal from an end of its range from which on changes towards that end count in full.
_HALF = 0.5


class Feeling(NamedTuple):
    """Valence from -1, bad, to 1, good; arousal from 0, calm, to 1, excited. Also a change of both."""

    valence: float
    arousal: float


class Event(StrEnum):
    """An event that moves the mood."""

    #: A boundary matched that does more than flag.
    BOUNDARY = "boundary"
    #: An action failed.
    FAILURE = "failure"
    #: An action was refused.
    BLOCKED = "blocked"
    #: An action succeeded.
    SUCCESS = "success"
    #: The agent reached out to somebody.
    REACH_OUT = "reach_out"
    #: The agent rested.
    REST = "rest"
    #: Somebody wrote to the agent.
    CONTACT = "contact"
    #: A goal was completed.
    GOAL_DONE = "goal_done"
    #: A goal progressed.
    GOAL_PROGRESSED = "goal_progressed"
    #: A goal was added.
    GOAL_CREATED = "goal_created"
    #: A goal was planned.
    GOAL_PLANNED = "goal_planned"
    #: A goal was blocked.
    GOAL_BLOCKED = "goal_blocked"
    #: A change of a goal was refused.
    GOAL_REFUSED = "goal_refused"
    #: A goal was abandoned.
    GOAL_ABANDONED = "goal_abandoned"
    #: The agent has a concern.
    CONCERN = "concern"


#: The change of mood by each event. Boundary, failure, reaching out, rest, goal done and abandoned have the values of the
#: origin of seed 004. A refusal counts as a failure; small successes add up to the transcript's "mild satisfaction" (0.3).
#: The other values are Arbor's.
DELTAS: Mapping[Event, Feeling] = MappingProxyType(
    {
        Event.BOUNDARY: Feeling(-0.4, 0.3),
        Event.FAILURE: Feeling(-0.1, 0.1),
        Event.BLOCKED: Feeling(-0.1, 0.1),
        Event.SUCCESS: Feeling(0.05, 0.0),
        Event.REACH_OUT: Feeling(0.2, 0.1),
        Event.REST: Feeling(0.1, -0.2),
        Event.CONTACT: Feeling(0.0, 0.1),
        Event.GOAL_DONE: Feeling(0.3, 0.1),
        Event.GOAL_PROGRESSED: Feeling(0.1, 0.0),
        Event.GOAL_CREATED: Feeling(0.05, 0.05),
        Event.GOAL_PLANNED: Feeling(0.05, 0.0),
        Event.GOAL_BLOCKED: Feeling(-0.05, 0.05),
        Event.GOAL_REFUSED: Feeling(-0.1, 0.0),
        Event.GOAL_ABANDONED: Feeling(-0.2, -0.1),
        Event.CONCERN: Feeling(-0.05, 0.05),
    }
)

#: Events of each heartbeat's routine. They count by the time since the last heartbeat: a thousand small successes in a day
#: of heartbeats every minute are no more than those of a day of hourly ones.
ROUTINE = frozenset(
    {
        Event.FAILURE,
        Event.BLOCKED,
        Event.SUCCESS,
        Event.REST,
        Event.GOAL_PROGRESSED,
        Event.GOAL_CREATED,
        Event.GOAL_PLANNED,
        Event.GOAL_BLOCKED,
        Event.GOAL_REFUSED,
        Event.CONCERN,
    }
)

#: The default baseline.
USUAL = Feeling(0.0, 0.3)
#: The feelings of words in a baseline mood. Numbers in it, such as `valence 0.2, arousal 0.5`, take precedence.
TONES: Mapping[str, Feeling] = MappingProxyType(
    {
        "calm": Feeling(0.1, 0.15),
        "serene": Feeling(0.2, 0.1),
        "patient": Feeling(0.1, 0.2),
        "measured": Feeling(0.0, 0.2),
        "serious": Feeling(-0.05, 0.25),
        "formal": Feeling(0.0, 0.2),
        "direct": Feeling(0.0, 0.35),
        "warm": Feeling(0.25, 0.3),
        "friendly": Feeling(0.25, 0.35),
        "kind": Feeling(0.25, 0.25),
        "cheerful": Feeling(0.35, 0.5),
        "playful": Feeling(0.3, 0.55),
        "enthusiastic": Feeling(0.35, 0.65),
        "energetic": Feeling(0.25, 0.7),
        "curious": Feeling(0.15, 0.5),
        "anxious": Feeling(-0.2, 0.6),
        "vigilant": Feeling(-0.05, 0.55),
        "melancholic": Feeling(-0.3, 0.2),
    }
)
_NUMBER = re.compile(r"\b(valence|arousal)\b\D{0,4}?(-?\d*\.?\d+)")
_WORD = re.compile(r"[^\W\d_]+")


class Mood(BaseModel, frozen=True):
    """An agent's mood at a time; JSON by `model_dump(mode="json")`, back by `read_mood`."""

    valence: Annotated[float, Field(ge=-1, le=1)]
    arousal: Annotated[float, Field(ge=0, le=1)]
    at: AwareDatetime

    def at_time(self, now: datetime, baseline: Feeling) -> Mood:
        """Return the mood faded until a time."""
        span = max(now - self.at, timedelta())
        return Mood(
            valence=_fade(self.valence, baseline.valence, span / VALENCE_HALF_LIFE),
            arousal=_fade(self.arousal, baseline.arousal, span / AROUSAL_HALF_LIFE),
            at=max(now, self.at),
        )

    def moved(self, events: Iterable[Event], *, after: timedelta = FULL_AFTER) -> Mood:
        """Return the mood after events; the nearer it is to an end of its range, the less they move it. `after`: as in `change_of`."""
        by = change_of(events, after=after)
        room = 1 - self.valence if by.valence > 0 else 1 + self.valence
        excitable = 1 - self.arousal if by.arousal > 0 else self.arousal
        return Mood(
            valence=round(_clip(self.valence + by.valence * min(1.0, room), -1.0), 4),
            arousal=round(_clip(self.arousal + by.arousal * min(1.0, excitable / _HALF), 0.0), 4),
            at=self.at,
        )


def change_of(events: Iterable[Event], *, after: timedelta = FULL_AFTER) -> Feeling:
    """Return the total change of a mood by events that happened `after` the previous heartbeat."""
    share = min(max(after / FULL_AFTER, 0.0), 1.0)
    weighted = [(DELTAS[event], share if event in ROUTINE else 1.0) for event in events]
    return Feeling(
        sum(delta.valence * weight for delta, weight in weighted),
        sum(delta.arousal * weight for delta, weight in weighted),
    )


def time_since(stored: Mapping[str, Any] | None, now: datetime) -> timedelta:
    """Return the time since a stored mood; FULL_AFTER for an invalid one."""
    try:
        return max(now - Mood.model_validate(stored).at, timedelta())
    except ValidationError:
        return FULL_AFTER


def read_mood(stored: Mapping[str, Any] | None, *, baseline: Feeling, now: datetime) -> Mood:
    """Parse a stored mood, faded until now; the baseline for an invalid one."""
    try:
        mood = Mood.model_validate(stored)
    except ValidationError:
        mood = Mood(valence=baseline.valence, arousal=baseline.arousal, at=now)
    return mood.at_time(now, baseline)


def baseline_of(aspects: Iterable[str]) -> Feeling:
    """Return an agent's baseline from the words or numbers of its aspects.

    The mean of the words of `TONES` in them; `valence` or `arousal` with a number takes precedence; `USUAL` without any of
    these.
    """
    text = " ".join(aspects).casefold()
    tones = [TONES[word] for word in _WORD.findall(text) if word in TONES] or [USUAL]
    valence = sum(tone.valence for tone in tones) / len(tones)
    arousal = sum(tone.arousal for tone in tones) / len(tones)
    numbers = {name: float(number) for name, number in _NUMBER.findall(text)}
    return Feeling(_clip(numbers.get("valence", valence), -1.0), _clip(numbers.get("arousal", arousal), 0.0))


def total_valence(events: Iterable[Event]) -> float:
    """Return the total valence of events, from -1 to 1."""
    return round(_clip(sum(DELTAS[event].valence for event in events), -1.0), 3)


def describe_mood(valence: float, arousal: float) -> str:
    """Describe a mood in words for valence and arousal."""
    good = next(
        word
        for above, word in (
            (0.5, "very good"),
            (0.15, "good"),
            (-0.15, "even"),
            (-0.5, "low"),
            (-2, "very low"),
        )
        if valence > above
    )
    excitement = "stirred up" if arousal > 0.6 else "alert" if arousal > 0.25 else "still"
    return f"{good} and {excitement}"


def _fade(value: float, baseline: float, half_lives: float) -> float:
    return round(baseline + (value - baseline) * math.exp2(-half_lives), 4)


def _clip(value: float, low: float) -> float:
    return min(max(value, low), 1.0)
