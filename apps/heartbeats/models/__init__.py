"""Models of heartbeats: schedules, progress, percepts, processes."""

from apps.heartbeats.models.beats import Heartbeat, HeartbeatStatus, Percept, PerceptKind
from apps.heartbeats.models.processes import Process
from apps.heartbeats.models.schedule import DUE_AT, HeartbeatSchedule, ScheduleState, Trigger

__all__ = [
    "DUE_AT",
    "Heartbeat",
    "HeartbeatSchedule",
    "HeartbeatStatus",
    "Percept",
    "PerceptKind",
    "Process",
    "ScheduleState",
    "Trigger",
]
