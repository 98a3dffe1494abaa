"""The ages at which the records of an installation's history are deleted."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta
from enum import StrEnum

from arbor.errors import ConfigurationInvalid


class Record(StrEnum):
    """The kinds of records that are deleted by age."""

    #: Ended heartbeats, with their trace, their model calls and the percepts that they took in.
    HEARTBEATS = "heartbeats"
    #: Ended model calls of maintenance and conversations.
    CALLS = "calls"
    #: Ended conversations, with their turns.
    CONVERSATIONS = "conversations"
    #: Messages of agents that were delivered, given up or withdrawn.
    MESSAGES = "messages"
    #: Requests for approval that were decided or have expired, once their heartbeats are gone.
    APPROVALS = "approvals"
    #: Ended plans, with their steps and intents.
    PLANS = "plans"
    #: Progress notes of goals, and the links of closed goals to memories.
    PROGRESS = "progress"
    #: The cost of single calls; daily usage has their sums.
    LEDGER = "ledger"
    #: Daily usage.
    USAGE = "usage"
    #: The audit log of tenants and of the installation.
    AUDIT = "audit"
    #: Signals.
    SIGNALS = "signals"
    #: Ended runs of workflows, with their steps.
    WORKFLOWS = "workflows"
    #: Deliveries at hooks and of webhooks.
    DELIVERIES = "deliveries"


#: The least age at which audit records are deleted.
MIN_AUDIT_AGE = timedelta(days=30)
#: Usage of today and yesterday is compared with daily limits, so it stays for two days.
_MIN_DAYS: Mapping[Record, float] = {Record.USAGE: 2.0, Record.AUDIT: MIN_AUDIT_AGE / timedelta(days=1)}
#: Audit records are deleted by the month, so that the record of their deletion is one among many.
AUDIT_SPAN = timedelta(days=30)
_MAX_DAYS = 36_500.0


def setting_of(record: Record) -> str:
    """Return the name of the setting that limits the age of such records."""
    return f"ARBOR_{record.value.upper()}_DAYS"


def parse_ages(days: Mapping[Record, str]) -> dict[Record, timedelta | None]:
    """Parse the age in days at which each kind of record is deleted; 0 and an empty text become None, which is never.

    Raises ConfigurationInvalid for a text that is not an age, and for an age that is too low for its kind of record.
    """
    return {record: _age(record, text.strip()) for record, text in days.items()}


def _age(record: Record, text: str) -> timedelta | None:
    try:
        days = float(text or 0)
    except ValueError:
        days = math.nan
    least = _MIN_DAYS.get(record, 0.0)
    if days != 0 and not least <= days <= _MAX_DAYS:
        possible = f"0 (for ever) or {least:g} to" if least else "0 (for ever) to"
        raise ConfigurationInvalid(
            f"{setting_of(record)} must be {possible} {_MAX_DAYS:g} days, got {text!r}"
        )
    return timedelta(days=days) or None
