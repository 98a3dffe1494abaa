"""Models of heartbeats: schedules, progress, percepts, model calls and their cost, processes."""

from apps.heartbeats.models.beats import Heartbeat, HeartbeatStatus, Percept, PerceptKind
from apps.heartbeats.models.calls import CallStatus, DailyUsage, ExternalCall, LedgerEntry
from apps.heartbeats.models.processes import Process
from apps.heartbeats.models.schedule import DUE_AT, HeartbeatSchedule, ScheduleState, Trigger

__all__ = [
    "DUE_AT",
    "CallStatus",
    "DailyUsage",
    "ExternalCall",
    "Heartbeat",
    "HeartbeatSchedule",
    "HeartbeatStatus",
    "LedgerEntry",
    "Percept",
    "PerceptKind",
    "Process",
    "ScheduleState",
    "Trigger",
]
