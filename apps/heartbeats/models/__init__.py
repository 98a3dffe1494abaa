"""The heartbeat as durable rows: when it is due, how far it has come, what it asked of models, what it cost."""

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
