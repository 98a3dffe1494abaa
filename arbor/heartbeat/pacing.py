"""The schedule of heartbeats: due times, active hours and idle heartbeats."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

from arbor.errors import Invalid
from arbor.values import replace

#: Triggers (`apps.agents.models.Trigger`).
TIMER = "timer"
DRIVE = "drive"
CYCLE = "cycle"
MESSAGE = "message"

#: Triggers of heartbeats that nobody requested.
BY_ITSELF = frozenset({TIMER, DRIVE})
#: Triggers whose heartbeats are skipped when idle: a cycle is requested, but ends when idle.
ENDS_WHEN_IDLE = BY_ITSELF | {CYCLE}

# Seed 004, 10.1, asks for an adaptive schedule and gives no figures.
SLOWER_PER_IDLE_HEARTBEAT = 1.5
SLOWEST = 4.0
#: An agent that decides by rule looks for news once in this time when it wonders about nothing.
WITHOUT_QUESTION = timedelta(days=1)
#: The longest wait, unless the interval is longer, after heartbeats in a row whose prompts left no room for a reply.
WITHOUT_ROOM = timedelta(days=1)


@dataclass(frozen=True, kw_only=True, slots=True)
class ActiveHours:
    """Hours of the day, by a wall clock, for heartbeats; they may span midnight. Raises Invalid for equal ends."""

    start: time
    end: time
    zone: ZoneInfo

    def __post_init__(self) -> None:
        if self.start == self.end:
            raise Invalid(
                f"active hours begin and end at different times, got {self.start:%H:%M} twice; leave both out for always"
            )

    def contain(self, moment: datetime) -> bool:
        """Return whether a time is within the hours; the end is excluded."""
        clock = moment.astimezone(self.zone).time()
        if self.start < self.end:
            return self.start <= clock < self.end
        return clock >= self.start or clock < self.end

    def at_or_after(self, moment: datetime) -> datetime:
        """Return the time if it is within the hours, else their next start, in UTC.

        A start that the clock skips in spring becomes the time after the jump, or the next day's start if the hours are over then; of an
        ambiguous start in autumn, the first counts.
        """
        if self.contain(moment):
            return moment.astimezone(UTC)
        local = moment.astimezone(self.zone)
        # On the day that the clock is set back, the start of the hours may occur twice; a moment between the two waits for the
        # second. The third day counts where the clock skips the hours of the second.
        openings = (self._at(self.start, local, days=days, fold=fold) for days in range(3) for fold in (0, 1))
        return next(opening for opening in openings if opening >= moment and self.contain(opening))

    def end_from(self, moment: datetime) -> datetime:
        """Return the end of the hours that a time is within, in UTC; outside of them the time itself."""
        if not self.contain(moment):
            return moment.astimezone(UTC)
        local = moment.astimezone(self.zone)
        over_night = self.end <= local.time()
        ends = [self._at(self.end, local, days=1 if over_night else 0, fold=fold) for fold in (0, 1)]
        # The end of an ambiguous hour occurs twice.
        return next((end for end in ends if end >= moment), moment.astimezone(UTC))

    def _at(self, clock: time, local: datetime, *, days: int, fold: int = 0) -> datetime:
        wall = datetime.combine(local.date() + timedelta(days=days), clock, self.zone).replace(fold=fold)
        # In UTC, a time that the clock skips is the time after the jump.
        return wall.astimezone(UTC)


@dataclass(frozen=True, kw_only=True, slots=True)
class SchedulePolicy:
    """An agent's interval, above 0, and active hours; None: around the clock."""

    interval: timedelta
    adaptive: bool = True
    hours: ActiveHours | None = None


@dataclass(frozen=True, kw_only=True, slots=True)
class NextHeartbeat:
    """The due time and trigger of the next heartbeat (`apps.agents.models.Trigger`)."""

    due_at: datetime
    trigger: str = TIMER


def slowdown(idle_heartbeats: int, *, adaptive: bool) -> float:
    """Return the factor of the interval after idle heartbeats in a row, 1 to 4."""
    if not adaptive or idle_heartbeats <= 0:
        return 1.0
    # A large power would overflow.
    return min(SLOWEST, SLOWER_PER_IDLE_HEARTBEAT ** min(idle_heartbeats, 16))


def next_heartbeat(
    policy: SchedulePolicy,
    *,
    now: datetime,
    idle_heartbeats: int,
    shift: float,
    urgent_at: datetime | None = None,
) -> NextHeartbeat:
    """Return the next heartbeat after one at `now`.

    `shift` is jitter, -0.05 to 0.05 of the interval. A drive that becomes urgent earlier brings the heartbeat forward;
    active hours delay both.
    """
    wait = policy.interval * slowdown(idle_heartbeats, adaptive=policy.adaptive)
    due = now + wait * (1 + shift)
    by_drive = urgent_at is not None and urgent_at < due
    if urgent_at is not None and by_drive:
        due = max(now, urgent_at)
    if policy.hours is not None and not policy.hours.contain(due):
        opening = policy.hours.at_or_after(due)
        # Agents with the same hours do not start at once.
        spread = opening + policy.interval * abs(shift)
        due = spread if policy.hours.contain(spread) else opening
    return NextHeartbeat(due_at=due, trigger=DRIVE if by_drive else TIMER)


def next_without_room(policy: SchedulePolicy, *, now: datetime, failures: int, shift: float) -> NextHeartbeat:
    """Return the next heartbeat after `failures` in a row whose prompts left no room for a reply; each doubles the wait.

    Only a person can make room, by another model, window or character, and whoever asks starts a heartbeat at once.
    """
    longer = min(policy.interval * 2 ** min(failures, 16), WITHOUT_ROOM)
    waiting = replace(policy, interval=max(policy.interval, longer))
    return next_heartbeat(waiting, now=now, idle_heartbeats=0, shift=shift)


@dataclass(frozen=True, kw_only=True, slots=True)
class WakeReasons:
    """The reasons for which a heartbeat is not idle."""

    #: A person, a conversation or an event requested the heartbeat; a cycle ends when idle.
    asked_for: bool
    percepts: int
    #: Kinds of signals about what the agents of the tenant share. Those of agents wake nobody: two that are subscribed to each
    #: other would keep each other awake.
    signals: int
    #: Active objectives and tasks, pending intents, and approved requests.
    work: int
    proposals: int
    #: Whether goals are queued, none is active, and no reflection has looked at that yet.
    goals_to_activate: bool
    urgent_drive: bool
    consolidation: bool
    #: Heartbeats since the last reflection, idle ones included; None: unknown.
    since_reflection: int | None
    #: Time since the last thought; None: it has not thought yet.
    since_thought: timedelta | None = None
    #: Whether reflection may lead to something new: the reflex policy needs an open question.
    wonders: bool = True


def idle_reason(reasons: WakeReasons, *, reflect_every: int, pause: timedelta = timedelta()) -> str:
    """Return why the heartbeat is idle, or an empty text.

    An idle agent reflects once in `reflect_every` heartbeats, and no earlier than `pause` after its last thought (a day, if
    it wonders about nothing): an agent whose heartbeats follow each other by seconds would think the same again.
    """
    waits = (
        reasons.asked_for
        or reasons.percepts
        or reasons.signals
        or reasons.work
        or reasons.proposals
        or reasons.goals_to_activate
        or reasons.urgent_drive
        or reasons.consolidation
    )
    if waits:
        return ""
    thought = reasons.since_thought
    wait = pause if reasons.wonders else max(pause, WITHOUT_QUESTION)
    if thought is not None and thought < wait:
        return f"idle: nothing waits, and it last thought {_duration(thought)} ago"
    since = reasons.since_reflection
    if since is None or since >= reflect_every:
        return ""
    ago = "at the last heartbeat" if since <= 1 else f"{since} heartbeats ago"
    return f"idle: nothing waits, and it reflected {ago}"


def _duration(elapsed: timedelta) -> str:
    seconds = round(elapsed.total_seconds())
    if seconds < 60:
        return f"{seconds} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.0f} h"


def off_hours_reason(hours: ActiveHours | None, *, now: datetime, asked_for: bool) -> str:
    """Return why a heartbeat outside of the active hours is skipped; empty within them, or if requested."""
    if hours is None or asked_for or hours.contain(now):
        return ""
    opens = hours.at_or_after(now).astimezone(hours.zone)
    return f"idle: outside its active hours, which begin {opens:%Y-%m-%d %H:%M} ({hours.zone.key})"
