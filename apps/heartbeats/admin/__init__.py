"""Heartbeats and all that belongs to them in the operator's console."""

from apps.heartbeats.admin.beats import HeartbeatAdmin, PerceptAdmin
from apps.heartbeats.admin.calls import ExternalCallAdmin, LedgerEntryAdmin
from apps.heartbeats.admin.running import HeartbeatScheduleAdmin, ProcessAdmin
from apps.heartbeats.admin.usage import DailyUsageAdmin

__all__ = [
    "DailyUsageAdmin",
    "ExternalCallAdmin",
    "HeartbeatAdmin",
    "HeartbeatScheduleAdmin",
    "LedgerEntryAdmin",
    "PerceptAdmin",
    "ProcessAdmin",
]
