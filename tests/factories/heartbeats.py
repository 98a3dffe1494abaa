"""Heartbeats with schedules and percepts, calls with their usage and keys, and processes, for tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any

import factory
from django.utils import timezone

from apps.agents.models import HeartbeatSchedule, Percept, PerceptKind, ScheduleState, Trigger
from apps.calls.models import CallStatus, DailyUsage, ExternalCall, LedgerEntry, ProviderKey
from apps.heartbeats.models import (
    Heartbeat,
    HeartbeatStatus,
    Process,
)
from arbor.ids import uuid7
from tests.factories.agents import AgentRowFactory
from tests.factories.rows import RowFactory, TenantRowFactory, minutes_ago


class ScheduleFactory(AgentRowFactory[HeartbeatSchedule]):
    class Meta:
        model = HeartbeatSchedule

    state = ScheduleState.IDLE
    next_due_at = factory.LazyFunction(lambda: timezone.now() + timedelta(minutes=12))
    interval_s = 3600.0


def trace_step(at: datetime) -> dict[str, Any]:
    """Return the only step of a heartbeat's trace in its stored form."""
    return {
        "sequence": 1,
        "node": "observe",
        "handler": "observe",
        "phase": "inside",
        "outcome": "success",
        "changed": [],
        "started_at": at.isoformat(),
        "duration_ms": 1.5,
    }


class HeartbeatFactory(AgentRowFactory[Heartbeat]):
    class Meta:
        model = Heartbeat

    number = factory.Sequence(lambda n: n + 1)
    slot_at = factory.Sequence(lambda n: timezone.now() - timedelta(minutes=5000 - n))
    trigger = Trigger.TIMER
    status = HeartbeatStatus.DONE
    mode = "goal_pursuit"
    epoch = factory.Sequence(lambda n: n + 1)
    energy_start = 10.0
    energy_end = 14.0
    energy_unit = factory.LazyAttribute(lambda o: getattr(o, "situation", {}).get("energy_unit", ""))
    reasoning = "The map is not finished, so I look at what I know of the river."
    actions = factory.LazyFunction(
        lambda: [
            {
                "action": "recall",
                "params": {"query": "the river"},
                "verdict": "run",
                "reason": "",
                "cost": 1,
                "outcome": "success",
                "summary": "recalled 2 memories about “the river”: The river is wide; The river floods",
            },
            {
                "action": "deploy",
                "params": {},
                "verdict": "not_authorized",
                "reason": "the template does not allow deploy",
                "cost": 0,
                "outcome": "blocked",
                "summary": "not done: the template does not allow deploy",
            },
        ]
    )
    goal_changes = factory.LazyFunction(list)
    dropped = factory.LazyFunction(
        lambda: [{"path": "goal_updates[0].progress", "value": 7, "reason": "progress is 0 to 1, got 7"}]
    )
    narrative = "I recalled the river and noted a new path."
    model = "openai/gpt-5-mini"
    own_ms = 18.4
    trace = factory.LazyAttribute(lambda o: [trace_step(o.started_at)])
    started_at = factory.LazyAttribute(lambda o: o.slot_at + timedelta(seconds=1))
    ended_at = factory.LazyAttribute(lambda o: o.started_at + timedelta(seconds=2))


class ExternalCallFactory(TenantRowFactory[ExternalCall]):
    class Meta:
        model = ExternalCall

    class Params:
        heartbeat = factory.SubFactory(HeartbeatFactory)

    agent = factory.SelfAttribute("heartbeat.agent")
    heartbeat_id = factory.SelfAttribute("heartbeat.id")
    purpose = "think"
    status = CallStatus.COMPLETE
    model = "openai/gpt-5-mini"
    request = factory.LazyFunction(
        lambda: {"purpose": "think", "system": "You are Scout.", "messages": [], "max_tokens": 2048}
    )
    sections = factory.LazyFunction(
        lambda: [
            {"name": "character", "text": "You are Scout.", "tokens": 4},
            {"name": "goals", "text": "1. Map the river.", "tokens": 6},
        ]
    )
    reply = '{"thinking": "The map is not finished."}'
    attempts = 1
    requested_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at)
    started_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at)
    ended_at = factory.LazyAttribute(lambda o: o.heartbeat.started_at + timedelta(milliseconds=900))


class MaintenanceCallFactory(AgentRowFactory[ExternalCall]):
    """A factory of failed maintenance calls."""

    class Meta:
        model = ExternalCall

    purpose = "summarize"
    status = CallStatus.FAILED
    model = "openai/gpt-5-mini"
    subject = factory.LazyFunction(lambda: {"episode": str(uuid7()), "size": 3})
    subject_key = factory.LazyAttribute(lambda o: f"episode:{o.subject['episode']}")
    request = factory.LazyFunction(lambda: {"purpose": "summarize", "system": "Sum up.", "messages": []})
    reply = "I would rather sing."
    error = "expected a JSON object"
    error_kind = "ReplyInvalid"
    attempts = 4
    failures = 4
    requested_at = factory.LazyFunction(lambda: minutes_ago(40))


class LedgerEntryFactory(TenantRowFactory[LedgerEntry]):
    class Meta:
        model = LedgerEntry

    agent = factory.SelfAttribute("call.agent")
    call = factory.SubFactory(ExternalCallFactory)
    purpose = "think"
    provider = "openai"
    model = "gpt-5-mini"
    input_tokens = 1200
    output_tokens = 240
    cost_usd = "0.00078"
    latency_ms = 900.0


class PerceptFactory(AgentRowFactory[Percept]):
    class Meta:
        model = Percept

    kind = PerceptKind.USER_MESSAGE
    content = "Is the river frozen?"


class DailyUsageFactory(AgentRowFactory[DailyUsage]):
    class Meta:
        model = DailyUsage

    day = factory.LazyFunction(lambda: timezone.now().date())
    heartbeats = 3
    calls = 4
    tokens = 5_200
    cost_usd = "0.0125"


class ProcessFactory(RowFactory[Process]):
    class Meta:
        model = Process

    name = factory.Sequence(lambda n: f"host:{1000 + n}")
    kind = "worker"
    queues = "heartbeat"
    pool = "prefork"
    concurrency = 2
    started_at = factory.LazyFunction(lambda: minutes_ago(90))
    seen_at = factory.LazyFunction(timezone.now)


class ProviderKeyFactory(TenantRowFactory[ProviderKey]):
    class Meta:
        model = ProviderKey

    provider = "openai"
    base_url = "https://models.example.org/v1"
    sealed_key = factory.LazyFunction(lambda: {"v": 1, "ct": "", "iv": "", "tag": ""})
    key_end = "a1b2"
    checked_at = factory.LazyFunction(lambda: minutes_ago(3))
    entered_by = "user:ann"
    entered_at = factory.LazyFunction(lambda: minutes_ago(9))
