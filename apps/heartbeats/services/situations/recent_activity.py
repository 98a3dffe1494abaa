"""Read an agent's recent activity: a column of the statement in `situation`, and values from it."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime, time, timedelta
from decimal import Decimal
from typing import Any
from zoneinfo import ZoneInfo

from apps.calls.services.usage import Limits
from apps.tenants.packing import unpack_in_json
from arbor.goals.goal_rules import EXHAUSTED_HEARTBEATS
from arbor.heartbeat.decision import DecisionVerdict
from arbor.heartbeat.failure_modes import (
    HEARTBEATS_COMPARED,
    HEARTBEATS_WATCHED,
    LIMITED_DAYS,
    STALE_NEIGHBORHOODS,
    UNSUMMARIZED_EPISODES,
    RecentHeartbeat,
    Spending,
)
from arbor.heartbeat.pacing import ActiveHours, SchedulePolicy
from arbor.heartbeat.situation import PERCEPTS_COUNTED, Mode
from arbor.heartbeat.usage import Amounts

#: Age of a locked intent that counts as stuck: a heartbeat lasts minutes.
STUCK_AFTER = timedelta(hours=1)
#: Time after the last contact for which a user counts as present.
PRESENT_FOR = timedelta(minutes=15)
#: Latest episodes searched for unsummarized ones.
_EPISODES = 3 * UNSUMMARIZED_EPISODES
#: Characters of a narrative and a reason that are compared.
_NARRATIVE = 600
_REASON = 60

#: Modes of heartbeats at which no work waited.
_WITHOUT_WORK = frozenset({Mode.REFLECTION.value, Mode.CONSOLIDATION.value})
#: Parameters of actions that name a topic.
_TOPICS = frozenset({"query", "queries", "question", "topic", "focus", "id"})

# Aliases: `a` agent, `s` state, `p` policy, `t` tenant, `schedule`, and `waiting` for counts of pending percepts. Large
# columns are fetched for the latest few heartbeats only. A heartbeat is an array in the order of `recent_heartbeats_of`. `energy` is
# null under other budgets, whose amounts share its columns. The levels of days are compared after reading: by the index of low
# levels, the planner would read those of all agents.
RECENT_ACTIVITY = """
    json_build_object(
        'interval_s', schedule.interval_s, 'talks', coalesce(schedule.paused_until > now(), false),
        'policy', CASE WHEN p.agent_id IS NOT NULL THEN json_build_object(
            'adaptive', p.adaptive, 'active_from', p.active_from, 'active_until', p.active_until, 'time_zone', p.time_zone,
            'daily_heartbeats', p.daily_heartbeats, 'daily_tokens', p.daily_tokens, 'daily_usd', p.daily_usd::text) END,
        'tenant', CASE WHEN num_nonnulls(t.daily_heartbeats, t.daily_tokens, t.daily_usd) > 0 THEN json_build_object(
            'daily_heartbeats', t.daily_heartbeats, 'daily_tokens', t.daily_tokens, 'daily_usd', t.daily_usd::text) END,
        'used', (SELECT to_json(u) FROM (
            SELECT heartbeats, tokens, cost_usd::text AS usd, level FROM calls_dailyusage
            WHERE tenant_id = a.tenant_id AND agent_id = a.id AND day = (now() AT TIME ZONE 'UTC')::date) u),
        'limited', (SELECT coalesce(bool_or(level <> 'normal'), false) FROM calls_dailyusage WHERE tenant_id = a.tenant_id
            AND agent_id = a.id AND day > (now() AT TIME ZONE 'UTC')::date - %(activity_days)s::integer),
        'idle_heartbeats', s.idle_heartbeats, 'nops', s.nops, 'reached_out_at', s.last_reach_out_at,
        'reached_out', (SELECT count(DISTINCT (heartbeat_id, content)) FROM contacts_outboxmessage WHERE tenant_id = a.tenant_id AND agent_id = a.id
            AND created_at > now() - interval '24 hours' AND audience = 'user'),
        'percepts', waiting.percepts,
        'stuck', (SELECT count(*) FROM goals_intent WHERE tenant_id = a.tenant_id AND agent_id = a.id
            AND status = 'locked' AND locked_at < now() - %(activity_stuck)s),
        'stale', (SELECT count(*) FROM (SELECT FROM memories_upkeep WHERE tenant_id = a.tenant_id AND agent_id = a.id
            AND stale LIMIT %(activity_stale)s) w),
        'unsummarized', (SELECT count(*) FROM (SELECT ended_at, summarized_at FROM memories_episode
            WHERE tenant_id = a.tenant_id AND agent_id = a.id ORDER BY started_at DESC LIMIT %(activity_episodes)s) w
            WHERE w.ended_at IS NOT NULL AND w.summarized_at IS NULL),
        'heartbeats', (SELECT coalesce(json_agg(json_build_array(status, mode,
                CASE WHEN status = 'failed' THEN left(reason, %(activity_reason)s) END,
                CASE WHEN narrated THEN left(narrative, %(activity_narrative)s) END,
                CASE WHEN narrated THEN actions END)), '[]')
            FROM (SELECT b.*, status = 'done' AND %(activity_narrated)s >=
                count(*) FILTER (WHERE status = 'done') OVER (ORDER BY started_at DESC) AS narrated FROM (
                SELECT status, mode, reason, narrative, actions, started_at
                FROM heartbeats_heartbeat WHERE tenant_id = a.tenant_id AND agent_id = a.id AND ended_at IS NOT NULL
                ORDER BY started_at DESC LIMIT %(activity_watched)s) b ORDER BY started_at DESC) watched
        ),
        'energy', CASE WHEN coalesce(p.budget, 'energy') = 'energy' THEN (
            SELECT coalesce(json_agg(json_build_array(b.energy_start, b.energy_end, b.mode)), '[]') FROM (
                SELECT energy_start, energy_end, mode FROM heartbeats_heartbeat
                WHERE tenant_id = a.tenant_id AND agent_id = a.id AND status = 'done' AND trigger <> 'cycle'
                ORDER BY started_at DESC LIMIT %(activity_watched)s) b) END
    ) AS activity
"""


def recent_activity_values() -> dict[str, Any]:
    """Return the parameters of RECENT_ACTIVITY."""
    return {
        "activity_counted": PERCEPTS_COUNTED,
        "activity_stale": STALE_NEIGHBORHOODS,
        "activity_episodes": _EPISODES,
        "activity_stuck": STUCK_AFTER,
        "activity_reason": _REASON,
        "activity_narrated": HEARTBEATS_COMPARED,
        "activity_narrative": _NARRATIVE,
        "activity_watched": HEARTBEATS_WATCHED,
        "activity_days": LIMITED_DAYS,
    }


def presence_of(
    recent_activity: Mapping[str, Any], *, last_contact: datetime | None, now: datetime
) -> dict[str, Any]:
    """Return the fields of `Environment` about the presence of users and the last message to them."""
    reached = recent_activity["reached_out_at"]
    return {
        "user_present": recent_activity["talks"]
        or (last_contact is not None and now - last_contact < PRESENT_FOR),
        "hours_since_reach_out": (now - datetime.fromisoformat(reached)) / timedelta(hours=1)
        if reached
        else None,
    }


def recent_heartbeats_of(recent_activity: Mapping[str, Any]) -> list[RecentHeartbeat]:
    """Return the latest heartbeats, newest first."""
    return [
        RecentHeartbeat(
            status=status,
            mode=mode,
            reason=reason or "",
            narrative=narrative or "",
            topics=tuple(text for params in _executed(actions) for text in _topics(params)),
        )
        for status, mode, reason, narrative, actions in recent_activity["heartbeats"]
    ]


def _executed(actions: str | None) -> list[Mapping[str, Any]]:
    """Return the parameters of the actions that were executed."""
    entries = unpack_in_json(actions) if actions else []
    return [entry["params"] for entry in entries if entry["verdict"] == DecisionVerdict.RUN]


def _topics(params: Mapping[str, Any]) -> list[str]:
    """Return the topics in an action's parameters."""
    values = [value for name, value in params.items() if name in _TOPICS]
    listed = [text for value in values for text in (value if isinstance(value, list) else [value])]
    return [text for text in listed if isinstance(text, str)]


def spending_of(recent_activity: Mapping[str, Any]) -> list[Spending]:
    """Return the energy that the latest completed heartbeats spent, newest first; empty under another budget."""
    return [
        Spending(start=start, end=end, worked=mode not in _WITHOUT_WORK)
        for start, end, mode in recent_activity["energy"] or ()
        if start is not None and end is not None
    ]


def exhausted_heartbeats_of(recent_activity: Mapping[str, Any]) -> int:
    """Count those of the latest completed heartbeats that ended with less than 1 energy; 0 under another budget."""
    return sum(
        end is not None and end < 1 for _, end, _ in (recent_activity["energy"] or ())[:EXHAUSTED_HEARTBEATS]
    )


def schedule_policy_of(recent_activity: Mapping[str, Any]) -> SchedulePolicy:
    """Return the agent's interval and active hours."""
    policy = recent_activity["policy"] or {}
    start, end = policy.get("active_from"), policy.get("active_until")
    hours = None
    if start and end and start != end:
        hours = ActiveHours(
            start=time.fromisoformat(start), end=time.fromisoformat(end), zone=ZoneInfo(policy["time_zone"])
        )
    return SchedulePolicy(
        interval=timedelta(seconds=recent_activity["interval_s"]),
        adaptive=policy.get("adaptive", True),
        hours=hours,
    )


def limits_of(recent_activity: Mapping[str, Any]) -> Limits:
    """Return today's limits."""
    tenant = recent_activity["tenant"]
    return Limits(
        own=_read_limits(recent_activity["policy"] or {}), of_tenant=_read_limits(tenant) if tenant else None
    )


def used_of(recent_activity: Mapping[str, Any]) -> Amounts:
    """Return what the agent has used today."""
    used = recent_activity["used"] or {}
    return Amounts(
        heartbeats=used.get("heartbeats", 0), tokens=used.get("tokens", 0), usd=Decimal(used.get("usd", "0"))
    )


def _read_limits(row: Mapping[str, Any]) -> Amounts:
    usd = row.get("daily_usd")
    return Amounts(
        heartbeats=row.get("daily_heartbeats"),
        tokens=row.get("daily_tokens"),
        usd=None if usd is None else Decimal(usd),
    )
