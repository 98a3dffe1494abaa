"""When an agent beats next, and which of its beats are idle: rules over times, nothing is done here."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from arbor.errors import Invalid
from arbor.heartbeat.triggers import DRIVE, TIMER

# Seed 004, 10.1 asks for a rhythm that adapts and leaves the figures open: our choice. Each idle beat in a row makes the
# next one come later, up to four times the interval.
SLOWER_PER_IDLE_BEAT = 1.5
SLOWEST = 4.0


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveHours:
    """Hours of the day, by a wall clock, in which an agent beats; they may go over midnight.

    Raises Invalid when they begin where they end.
    """

    start: time
    end: time
    zone: ZoneInfo

    def __post_init__(self) -> None:
        if self.start == self.end:
            raise Invalid(
                f"active hours begin and end at different times, got {self.start:%H:%M} twice; leave both out for always"
            )

    def contain(self, moment: datetime) -> bool:
        """Tell whether the wall clock shows one of the hours; the end is outside."""
        clock = moment.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end

    def at_or_after(self, moment: datetime) -> datetime:
        """Return the moment if it is within the hours, else when they begin next, in UTC.

        A beginning that the clock jumps over in spring is taken as the moment after the jump; one that comes twice in
        autumn as the first.
        """
        if self.contain(moment):
            return moment.astimezone(UTC)
        local = moment.astimezone(self.zone)
        opening = self._opening(local, days=0)
        return opening if opening >= moment else self._opening(local, days=1)

    def _opening(self, local: datetime, *, days: int) -> datetime:
        wall = datetime.combine(local.date() + timedelta(days=days), self.start, self.zone)
        # There and back: a time that does not exist becomes the one that the clock shows then.
        return wall.astimezone(UTC).astimezone(self.zone).astimezone(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class Rhythm:
    """How an agent beats. `interval` is above 0; without `hours` it beats around the clock."""

    interval: timedelta
    adaptive: bool = True
    hours: ActiveHours | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NextBeat:
    """When the next beat is due, and what brings it about (`arbor.heartbeat.triggers`)."""

    due_at: datetime
    trigger: str = TIMER


def slowdown(idle_beats: int, *, adaptive: bool) -> float:
    """Return by what the interval is multiplied after so many idle beats in a row: 1 to 4."""
    if not adaptive or idle_beats <= 0:
        return 1.0
    # Beyond a few the power would only overflow.
    return min(SLOWEST, SLOWER_PER_IDLE_BEAT ** min(idle_beats, 16))


def next_beat(
    rhythm: Rhythm, *, now: datetime, idle_beats: int, shift: float, urgent_at: datetime | None = None
) -> NextBeat:
    """Return when an agent beats next after a beat at `now`.

    `shift` moves it by that share of its interval, so that a fleet does not beat in step (-0.05 to 0.05). A drive that
    becomes urgent before then brings it forward. Active hours go before both: a night is a night.
    """
    wait = rhythm.interval * slowdown(idle_beats, adaptive=rhythm.adaptive)
    due = now + wait * (1 + shift)
    by_drive = urgent_at is not None and urgent_at < due
    if urgent_at is not None and by_drive:
        due = max(now, urgent_at)
    if rhythm.hours is not None and not rhythm.hours.contain(due):
        opening = rhythm.hours.at_or_after(due)
        # A fleet with the same hours does not wake in one moment.
        spread = opening + rhythm.interval * abs(shift)
        due = spread if rhythm.hours.contain(spread) else opening
    return NextBeat(due_at=due, trigger=DRIVE if by_drive else TIMER)


@dataclass(frozen=True, kw_only=True, slots=True)
class Stirrings:
    """What could make a beat more than idle."""

    #: A person, a conversation, an event or a cycle asked for it.
    asked_for: bool
    percepts: int
    #: Objectives and tasks that are active, and steps that wait.
    work: int
    proposals: int
    urgent_drive: bool
    consolidation: bool
    #: Beats since the last one that reflected, idle ones included; None: none of those that are known did.
    since_reflection: int | None


def idle_reason(stirrings: Stirrings, *, reflect_every: int) -> str:
    """Return why nothing is to be done at this beat; empty when something is.

    An agent with nothing to do still reflects once in `reflect_every` beats.
    """
    waits = (
        stirrings.asked_for
        or stirrings.percepts
        or stirrings.work
        or stirrings.proposals
        or stirrings.urgent_drive
        or stirrings.consolidation
    )
    since = stirrings.since_reflection
    if waits or since is None or since >= reflect_every:
        return ""
    ago = "at the last beat" if since <= 1 else f"{since} beats ago"
    return f"idle: nothing waits, and it reflected {ago}"


def night_reason(hours: ActiveHours | None, *, now: datetime, asked_for: bool) -> str:
    """Return why a beat outside of the active hours is not run; empty within them, or when somebody asked for it."""
    if hours is None or asked_for or hours.contain(now):
        return ""
    opens = hours.at_or_after(now).astimezone(hours.zone)
    return f"idle: outside its active hours, which begin {opens:%Y-%m-%d %H:%M} ({hours.zone.key})"
