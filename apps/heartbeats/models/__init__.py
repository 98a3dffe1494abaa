"""Models of heartbeats: their progress, and processes."""

from apps.heartbeats.models.beats import Heartbeat, HeartbeatStatus
from apps.heartbeats.models.processes import Process

__all__ = [
    "Heartbeat",
    "HeartbeatStatus",
    "Process",
]
