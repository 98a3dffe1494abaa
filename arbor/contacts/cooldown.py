"""The rules for reaching out: cool-down and daily limit (seed 004, 9.3)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import timedelta

from arbor.errors import ConfigurationInvalid
from arbor.quotations import counted

REACH_OUT_USER = "reach_out_user"
REACH_OUT_AGENT = "reach_out_agent"
REACH_OUT_PUBLIC = "reach_out_public"

#: Seed 004, 9.3: no second message to the user within this time, unless the user wrote meanwhile.
COOLDOWN = timedelta(hours=4)
#: Seed 004, 9.3: "should be < 5 per day typically".
PUBLIC_PER_DAY = 4


@dataclass(frozen=True, kw_only=True)
class ContactLimits:
    """Limits of reaching out: a cool-down of 0 hours or more, 0 public messages or more in any 24 hours."""

    cooldown: timedelta = COOLDOWN
    public_per_day: int = PUBLIC_PER_DAY

    def __post_init__(self) -> None:
        if self.cooldown < timedelta(0):
            raise ConfigurationInvalid(f"a cool-down is 0 hours or more, got {self.cooldown}")
        if self.public_per_day < 0:
            raise ConfigurationInvalid(f"public messages a day are 0 or more, got {self.public_per_day}")


def refusals(
    *,
    hours_since_reach_out: float | None,
    hours_since_user: float | None,
    public_today: int,
    limits: ContactLimits | None = None,
) -> Mapping[str, str]:
    """Return the reasons why an agent may not reach out now, by action; empty where it may.

    Hours are None where the agent, or the user, never wrote. `public_today` counts the last 24 hours.
    """
    limits = limits or ContactLimits()
    reasons: dict[str, str] = {}
    wait = _hours_to_wait(hours_since_reach_out, hours_since_user, limits)
    if hours_since_reach_out is not None and wait > 0:
        reasons[REACH_OUT_USER] = (
            f"you last wrote to your user {format_hours(hours_since_reach_out)} ago and they have not written since;"
            f" it is possible again in {format_hours(wait)}"
        )
    if public_today >= limits.public_per_day:
        reasons[REACH_OUT_PUBLIC] = (
            f"you wrote in public {_times(public_today)} in the last 24 hours, where {_times(limits.public_per_day)} is allowed;"
            " it is possible again when the earliest of these messages is a day old"
            if limits.public_per_day
            else "this installation lets no agent write in public"
        )
    return reasons


def _hours_to_wait(since_reach_out: float | None, since_user: float | None, limits: ContactLimits) -> float:
    if since_reach_out is None:
        return 0.0
    if since_user is not None and since_user < since_reach_out:
        return 0.0
    return limits.cooldown / timedelta(hours=1) - since_reach_out


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def format_hours(hours: float) -> str:
    """Format a duration: in minutes below an hour and a half, at least one; in hours below two days; else in days."""
    if hours < 1.5:
        minutes = max(round(hours * 60), 1)
        return counted(minutes, "minute")
    return f"{hours:.1f} hours" if hours < 48 else f"{hours / 24:.0f} days"
