"""Drives: an agent's motivations (seed 004, "Drives"; the constants are its origin's).

A drive's level is a function of time. After a satisfaction it returns to its baseline for a while; then, as long as its
cause lasts, it grows until it is satisfied again. The level is computed from the state of the last heartbeat and the current
time, so nothing has to run in between.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from types import MappingProxyType
from typing import Annotated, Any

from pydantic import AwareDatetime, BaseModel, Field, ValidationError

#: The level that drives return to, the level from which they are urgent, and the decay per hour.
BASELINE = 0.5
URGENT = 0.8
DECAY = 0.05

_HOUR = timedelta(hours=1)
_DIGITS = 6


class Drive(StrEnum):
    """The drives of an agent."""

    #: To learn something new.
    CURIOSITY = "curiosity"
    #: To have consistent knowledge and beliefs.
    COHERENCE = "coherence"
    #: To reach its goals.
    COMPETENCE = "competence"
    #: To be in contact with others.
    CONNECTION = "connection"
    #: To pause.
    REST = "rest"


@dataclass(frozen=True, kw_only=True, slots=True)
class DriveRule:
    """The growth of a drive: `rate` per hour, from `cooldown` after its last satisfaction on."""

    rate: float
    cooldown: timedelta
    #: The cause of the growth, in words.
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
            rate=0.01, cooldown=timedelta(hours=4), cause="what you try fails, or your goals do not get on"
        ),
        Drive.CONNECTION: DriveRule(
            rate=0.005, cooldown=timedelta(days=1), cause="you have not been in touch with anybody"
        ),
        Drive.REST: DriveRule(rate=0.03, cooldown=timedelta(hours=2), cause="you have worked on and on"),
    }
)

#: The drive that a successful action satisfies, and the amount. The values of recall, connect, reflect, reach out and rest
#: are those of the origin of seed 004; the other actions follow the nearest of these (seed 004: curiosity is satisfied by
#: research and thinking, coherence by reflection and consolidation).
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
        "reach_out_agent": (Drive.CONNECTION, 0.3),
        "reach_out_public": (Drive.CONNECTION, 0.3),
        "rest": (Drive.REST, 0.4),
    }
)
#: Satisfaction by a completed goal, and by contact with a user or a peer (as much as reaching out).
GOAL_COMPLETED = (Drive.COMPETENCE, 0.4)
CONTACT = (Drive.CONNECTION, 0.3)

#: The drives that can cause a heartbeat: all but the need for rest.
TRIGGERING_DRIVES = tuple(drive for drive in Drive if drive is not Drive.REST)


#: A time of a drive; the cool-down after a later one would be no time.
_DriveTime = Annotated[AwareDatetime, Field(lt=datetime(9000, 1, 1, tzinfo=UTC))]


class DriveState(BaseModel, frozen=True):
    """A drive's level at a time, 0 to 1; `building`: its cause lasts after that time."""

    level: Annotated[float, Field(ge=0, le=1)] = BASELINE
    at: _DriveTime
    satisfied_at: _DriveTime | None = None
    building: bool = False
    #: The time of the last heartbeat that was not idle, if the drive was urgent then.
    pressed_at: _DriveTime | None = None


class Drives(BaseModel, frozen=True):
    """All drives of an agent; JSON by `to_json`, back by `read_drives`."""

    states: dict[Drive, DriveState]
    #: The time from which the levels no longer move: the agent has no heartbeats while it is paused or outside of its
    #: active hours. None: no such time.
    until: AwareDatetime | None = None

    def level(self, drive: Drive, now: datetime) -> float:
        """Return the level of a drive, 0 to 1, rounded: at the moment that `next_urgent_at` returns, the drive is urgent."""
        return round(self.exact_level(drive, now), _DIGITS)

    def exact_level(self, drive: Drive, now: datetime) -> float:
        """Return the level of a drive, 0 to 1."""
        state = self.states[drive]
        if self.until is not None:
            now = min(now, self.until)
        rule = RULES[drive]
        starts = _growth_start(state, rule)
        calm_until = max(min(now, starts), state.at) if state.building else now
        level = _decay(state.level, max(calm_until - state.at, timedelta()))
        if state.building and now > starts:
            level = min(1.0, level + rule.rate * ((now - max(starts, state.at)) / _HOUR))
        return level

    def to_json(self) -> dict[str, Any]:
        """Return the drives as JSON, short because each heartbeat stores it: without defaults, and their common time once."""
        ((at, _),) = Counter(state.at for state in self.states.values()).most_common(1)
        states = {
            drive.value: state.model_dump(
                mode="json", exclude_defaults=True, exclude={"at"} if state.at == at else None
            )
            for drive, state in self.states.items()
        }
        stored = {"at": at.isoformat(), "states": states}
        return stored if self.until is None else {**stored, "until": self.until.isoformat()}

    def is_pressing(self, drive: Drive, now: datetime) -> bool:
        """Return whether a drive is urgent and due for a heartbeat: a drive that stays urgent is due once in its cool-down."""
        pressed_at = self.states[drive].pressed_at
        waited = pressed_at is None or now - pressed_at >= RULES[drive].cooldown
        return waited and self.level(drive, now) >= URGENT

    def urgent(self, now: datetime) -> list[Drive]:
        """Return the urgent drives, the highest first."""
        levels = {drive: self.level(drive, now) for drive in Drive}
        return sorted((drive for drive in Drive if levels[drive] >= URGENT), key=lambda drive: -levels[drive])


def read_drives(stored: Mapping[str, Any] | None, now: datetime) -> Drives:
    """Parse stored drives, with or without a common time; an invalid or missing drive is at its baseline from now on."""
    stored = stored or {}
    stored_states = _with_time(stored.get("states") or {}, stored.get("at"))
    try:
        states = {drive: stored_states[drive] for drive in Drive}
        return Drives.model_validate({"states": states, "until": stored.get("until")})
    except (KeyError, TypeError, ValidationError):
        return Drives(states={drive: _read_state(stored_states, drive, now) for drive in Drive})


def _with_time(stored_states: Any, at: Any) -> Any:
    """Return stored states with their common time, where they have none of their own."""
    if at is None or not isinstance(stored_states, dict):
        return stored_states
    return {
        name: {"at": at, **state} if isinstance(state, dict) else state
        for name, state in stored_states.items()
    }


def _read_state(stored_states: Any, drive: Drive, now: datetime) -> DriveState:
    try:
        return DriveState.model_validate(stored_states[drive])
    except (KeyError, TypeError, ValidationError):
        return DriveState(at=now)


def satisfy_by_contact(drives: Drives, contact: datetime | None) -> Drives:
    """Return the drives satisfied by contact with a user since the last heartbeat, if there was any."""
    drive, amount = CONTACT
    before = drives.states[drive]
    if contact is None or contact <= before.at:
        return drives
    level = drives.level(drive, contact)
    state = DriveState(
        level=round(max(level - amount, min(level, BASELINE)), _DIGITS),
        at=contact,
        satisfied_at=contact,
        building=before.building,
        pressed_at=before.pressed_at,
    )
    return Drives(states={**drives.states, drive: state}, until=drives.until)


def after_heartbeat(
    drives: Drives,
    *,
    now: datetime,
    satisfied: Iterable[tuple[Drive, float]] = (),
    building: Mapping[Drive, bool],
) -> Drives:
    """Return the drives after a heartbeat: satisfied ones lower, never below the baseline, and growing while their cause lasts."""
    satisfactions: dict[Drive, float] = {}
    for drive, amount in satisfied:
        satisfactions[drive] = satisfactions.get(drive, 0.0) + amount
    states = {}
    for drive in Drive:
        level = drives.level(drive, now)
        before = drives.states[drive]
        pressed_at = now if level >= URGENT else None
        if drive in satisfactions:
            # A satisfaction must not raise a drive that is below its baseline.
            level = max(level - satisfactions[drive], min(level, BASELINE))
        states[drive] = DriveState(
            level=round(level, _DIGITS),
            at=now,
            satisfied_at=now if drive in satisfactions else before.satisfied_at,
            building=building.get(drive, False),
            pressed_at=pressed_at,
        )
    return Drives(states=states)


def after_idle_heartbeat(drives: Drives, *, now: datetime) -> Drives:
    """Return the drives after a heartbeat without thought: an idle agent needs no rest, the other causes last."""
    states = {
        drive: state.model_copy(
            update={
                "level": drives.level(drive, now),
                "at": now,
                "building": state.building and drive is not Drive.REST,
            }
        )
        for drive, state in drives.states.items()
    }
    return Drives(states=states)


def next_urgent_at(drives: Drives, now: datetime) -> tuple[datetime, Drive] | None:
    """Return the time at which the next drive becomes urgent, and the drive; None if none does.

    Drives that are urgent already, and the need for rest, do not count.
    """
    moments = []
    drives = drives.model_copy(update={"until": None})
    for drive in TRIGGERING_DRIVES:
        state, rule = drives.states[drive], RULES[drive]
        level = drives.level(drive, now)
        if not state.building or level >= URGENT:
            continue
        starts = max(now, _growth_start(state, rule))
        begins_at = drives.exact_level(drive, starts)
        moments.append((starts + _HOUR * ((URGENT - begins_at) / rule.rate), drive))
    return min(moments, default=None)


def _growth_start(state: DriveState, rule: DriveRule) -> datetime:
    return state.at if state.satisfied_at is None else max(state.at, state.satisfied_at + rule.cooldown)


def _decay(level: float, span: timedelta) -> float:
    most = DECAY * (span / _HOUR)
    return max(BASELINE, level - most) if level > BASELINE else min(BASELINE, level + most)
