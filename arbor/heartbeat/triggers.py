"""What brings a heartbeat about, as the steps need to know it; `apps.heartbeats.models.Trigger` has the rows' choices."""

from __future__ import annotations

TIMER = "timer"
DRIVE = "drive"
CYCLE = "cycle"
MESSAGE = "message"

#: Brought about by nobody's request.
BY_ITSELF = frozenset({TIMER, DRIVE})
#: A cycle is asked for, but ends where nothing is left to do.
ENDS_WHEN_IDLE = BY_ITSELF | {CYCLE}
