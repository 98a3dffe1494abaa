"""Models of heartbeats: progress, model calls and their cost, processes."""

from apps.heartbeats.models.beats import Heartbeat, HeartbeatStatus
from apps.heartbeats.models.calls import CallStatus, DailyUsage, ExternalCall, LedgerEntry
from apps.heartbeats.models.processes import Process

__all__ = [
    "CallStatus",
    "DailyUsage",
    "ExternalCall",
    "Heartbeat",
    "HeartbeatStatus",
    "LedgerEntry",
    "Process",
]
