"""Triggers of a heartbeat that steps refer to; the choices are `apps.heartbeats.models.Trigger`."""

from __future__ import annotations

TIMER = "timer"
DRIVE = "drive"
CYCLE = "cycle"
MESSAGE = "message"

#: Without a request.
BY_ITSELF = frozenset({TIMER, DRIVE})
#: A cycle is requested, but ends when idle.
ENDS_WHEN_IDLE = BY_ITSELF | {CYCLE}
