"""Drives: what moves an agent from within (seed 004, "Drives"; the constants are its origin's).

A drive's level is a function of time. After it was satisfied it falls back to its baseline for a while; then, as long
as its cause lasts, it builds up until it is satisfied again. What was stored at the last heartbeat and the time now say
how high it stands; nothing has to run in between.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

#: What a drive returns to, from where it demands attention, and how fast it returns, per hour.
BASELINE = 0.5
URGENT = 0.8
DECAY = 0.05

_HOUR = timedelta(hours=1)


class Drive(StrEnum):
    """What an agent is moved by."""

    #: To learn something new.
    CURIOSITY = "curiosity"
    #: To have what it knows and believes fit together.
    COHERENCE = "coherence"
    #: To bring about what it set out to.
    COMPETENCE = "competence"
    #: To be in touch.
    CONNECTION = "connection"
    #: To pause.
    REST = "rest"


@dataclass(frozen=True, kw_only=True, slots=True)
class DriveRule:
    """How a drive builds up: `rate` per hour, not before `cooldown` is over since it was satisfied."""

    rate: float
    cooldown: timedelta
    #: What it is that lets it build up.
    cause: str


RULES: Mapping[Drive, DriveRule] = MappingProxyType(
    {
        Drive.CURIOSITY: DriveRule(
            rate=0.02, cooldown=timedelta(minutes=30), cause="you have learned nothing new"
        ),
        Drive.COHERENCE: DriveRule(
            rate=0.01, cooldown=timedelta(hours=2), cause="something speaks against what you believe"
        ),
        Drive.COMPETENCE: DriveRule(
            rate=0.01, cooldown=timedelta(hours=4), cause="goals of yours are not completed"
        ),
        Drive.CONNECTION: DriveRule(
            rate=0.005, cooldown=timedelta(days=1), cause="you have not been in touch with anybody"
        ),
        Drive.REST: DriveRule(rate=0.03, cooldown=timedelta(hours=2), cause="you have worked on and on"),
    }
)

#: How much an action that worked satisfies which drive. Recall, connect, reflect, reach out, rest: the origin of seed 004;
#: the other actions are ours, by what they are nearest to (seed 004: curiosity is satisfied by research and thinking,
#: coherence by reflection and consolidation).
SATISFACTION: Mapping[str, tuple[Drive, float]] = MappingProxyType(
    {
        "recall": (Drive.CURIOSITY, 0.2),
        "inquire_shallow": (Drive.CURIOSITY, 0.2),
        "inquire_deep": (Drive.CURIOSITY, 0.4),
        "brainstorm_goals": (Drive.CURIOSITY, 0.1),
        "connect": (Drive.COHERENCE, 0.1),
        "maintain": (Drive.COHERENCE, 0.1),
        "reflect": (Drive.COHERENCE, 0.2),
        "synthesize": (Drive.COHERENCE, 0.2),
        "reach_out_user": (Drive.CONNECTION, 0.3),
        "reach_out_public": (Drive.CONNECTION, 0.3),
        "rest": (Drive.REST, 0.4),
    }
)
#: A goal that is completed, and somebody who gets in touch (ours, as much as reaching out).
GOAL_COMPLETED = (Drive.COMPETENCE, 0.4)
CONTACT = (Drive.CONNECTION, 0.3)

#: Tiredness does not wake anybody.
WAKING = tuple(drive for drive in Drive if drive is not Drive.REST)


class DriveState(BaseModel):
    """A drive as it stood at a moment, 0 to 1; `building` says whether its cause lasted then."""

    model_config = ConfigDict(frozen=True)

    level: Annotated[float, Field(ge=0, le=1)] = BASELINE
    at: datetime
    satisfied_at: datetime | None = None
    building: bool = False


class Drives(BaseModel):
    """All drives of an agent; JSON by `model_dump(mode="json")`, back by `read_drives`."""

    model_config = ConfigDict(frozen=True)

    states: dict[Drive, DriveState]

    def level(self, drive: Drive, now: datetime) -> float:
        """Return how high a drive stands, 0 to 1."""
        state = self.states[drive]
        rule = RULES[drive]
        starts = _builds_from(state, rule)
        calm_until = max(min(now, starts), state.at) if state.building else now
        level = _towards_baseline(state.level, max(calm_until - state.at, timedelta()))
        if state.building and now > starts:
            level = min(1.0, level + rule.rate * ((now - max(starts, state.at)) / _HOUR))
        return level

    def urgent(self, now: datetime) -> list[Drive]:
        """Return the drives that demand attention, the highest first."""
        levels = {drive: self.level(drive, now) for drive in Drive}
        return sorted((drive for drive in Drive if levels[drive] >= URGENT), key=lambda drive: -levels[drive])


def read_drives(stored: Mapping[str, Any] | None, now: datetime) -> Drives:
    """Return the drives that were stored; one that is missing or cannot be read stands at its baseline from now on."""
    known = (stored or {}).get("states") or {}
    try:
        return Drives.model_validate({"states": {drive: known[drive] for drive in Drive}})
    except (KeyError, TypeError, ValidationError):
        return Drives(states={drive: _read_state(known, drive, now) for drive in Drive})


def _read_state(known: Any, drive: Drive, now: datetime) -> DriveState:
    try:
        return DriveState.model_validate(known[drive])
    except (KeyError, TypeError, ValidationError):
        return DriveState(at=now)


def in_touch(drives: Drives, contact: datetime | None) -> Drives:
    """Return the drives as contact with a user since the last heartbeat leaves them, wherever it was: it satisfies."""
    drive, amount = CONTACT
    before = drives.states[drive]
    if contact is None or contact <= before.at:
        return drives
    level = drives.level(drive, contact)
    state = DriveState(
        level=round(max(level - amount, min(level, BASELINE)), 6),
        at=contact,
        satisfied_at=contact,
        building=before.building,
    )
    return Drives(states={**drives.states, drive: state})


def after_beat(
    drives: Drives,
    *,
    now: datetime,
    satisfied: Iterable[tuple[Drive, float]] = (),
    building: Mapping[Drive, bool],
) -> Drives:
    """Return the drives after a heartbeat: what satisfied them, never below the baseline, and which causes last."""
    given: dict[Drive, float] = {}
    for drive, amount in satisfied:
        given[drive] = given.get(drive, 0.0) + amount
    states = {}
    for drive in Drive:
        level = drives.level(drive, now)
        before = drives.states[drive]
        if drive in given:
            # What is below its baseline already is not raised by being satisfied.
            level = max(level - given[drive], min(level, BASELINE))
        states[drive] = DriveState(
            level=round(level, 6),
            at=now,
            satisfied_at=now if drive in given else before.satisfied_at,
            building=building.get(drive, False),
        )
    return Drives(states=states)


def next_urgent_at(drives: Drives, now: datetime) -> tuple[datetime, Drive] | None:
    """Return when the next drive will demand attention, and which; None if none will.

    Those that do already are left out, for they have been seen, and so is the need for rest.
    """
    moments = []
    for drive in WAKING:
        state, rule = drives.states[drive], RULES[drive]
        level = drives.level(drive, now)
        if not state.building or level >= URGENT:
            continue
        starts = max(now, _builds_from(state, rule))
        begins_at = drives.level(drive, starts)
        moments.append((starts + _HOUR * ((URGENT - begins_at) / rule.rate), drive))
    return min(moments, default=None)


def _builds_from(state: DriveState, rule: DriveRule) -> datetime:
    return state.at if state.satisfied_at is None else max(state.at, state.satisfied_at + rule.cooldown)


def _towards_baseline(level: float, span: timedelta) -> float:
    most = DECAY * (span / _HOUR)
    return max(BASELINE, level - most) if level > BASELINE else min(BASELINE, level + most)
