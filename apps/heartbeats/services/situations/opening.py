"""Build the situation and the opening facts of a heartbeat that begins, from the columns of its agent."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

from apps.calls.services.usage import budget_status
from apps.heartbeats.services.situations.offers import AgentTools
from apps.heartbeats.services.situations.recent_activity import (
    exhausted_heartbeats_of,
    limits_of,
    presence_of,
    recent_heartbeats_of,
    spending_of,
    used_of,
)
from apps.heartbeats.services.situations.self_situation import view_self, with_identity
from apps.tenants.packing import unpack_in_json
from arbor.agents.energy import EnergyTerms
from arbor.agents.genome import AgentGenome
from arbor.goals.intents import IntentStatus
from arbor.goals.review import GoalFlag
from arbor.heartbeat.actions import ACTIONS
from arbor.heartbeat.budgets import DEFAULT_BUDGET, BudgetBalance, BudgetKind, budget_of
from arbor.heartbeat.failure_modes import RecentActivity
from arbor.heartbeat.goal_situation import circumstances_of, read_priority_inputs, view_goals
from arbor.heartbeat.influence import read_past
from arbor.heartbeat.inputs import BudgetTerms, Opening
from arbor.heartbeat.situation import Environment, LastHeartbeat, Mode, Situation
from arbor.heartbeat.usage import BudgetLevel
from arbor.memory.detail_text import detail_lines
from arbor.memory.values import MemoryType
from arbor.models.handles import is_reflex
from arbor.selves.memory_filters import filters_of

#: Stale goals named in a notice.
_STALE_NAMED = 3

type _Columns = Mapping[str, Any]


def opening_of(columns: _Columns, situation: Situation, genome: AgentGenome | None, now: datetime) -> Opening:
    """Return the facts that a heartbeat begins with, besides its situation."""
    activity = columns["activity"]
    status = budget_status(limits_of(activity), used_of(activity))
    stale = [goal.title for goal in situation.active_goals if GoalFlag.STALE in goal.flags]
    mood = situation.mood.valence if columns["mood"] and situation.mood else None
    return Opening(
        recent_activity=RecentActivity(
            heartbeats=recent_heartbeats_of(activity),
            energy=spending_of(activity),
            limited=activity["limited"],
            regeneration=situation.regeneration,
            stale_goals=stale[:_STALE_NAMED],
            reached_out=activity["reached_out"],
            nops=activity["nops"],
            waiting_percepts=activity["percepts"],
            pending_intents=sum(intent.status is IntentStatus.PENDING for intent in situation.intents),
            stuck_intents=activity["stuck"],
            stale_neighborhoods=activity["stale"],
            unsummarized_episodes=activity["unsummarized"],
            level=status.level,
            nearest_limit=status.nearest,
        ),
        level_before=BudgetLevel((activity["used"] or {}).get("level", BudgetLevel.NORMAL)),
        idle_heartbeats=activity["idle_heartbeats"],
        buffer_item_count=columns["held"],
        mood=mood if mood is not None else (columns["last_heartbeat"] or {}).get("emotional_valence"),
        filters=filters_of(columns["beliefs"]),
        circumstances=circumstances_of(
            columns, genome, exhausted_heartbeats=exhausted_heartbeats_of(activity)
        ),
        priority_inputs=read_priority_inputs(columns, traits=genome.traits if genome else None, now=now),
        past=read_past(columns),
    )


def situation_of(
    columns: _Columns,
    terms: BudgetTerms | None,
    genome: AgentGenome | None,
    model: str,
    possible: Sequence[str],
    tools: AgentTools,
    now: datetime,
) -> Situation:
    """Return the situation of an agent, as far as it is known without recall."""
    energy = (terms.energy if terms else None) or EnergyTerms()
    budget = budget_of(terms.kind, terms.allowance, energy) if terms else DEFAULT_BUDGET
    default_prices = budget.kind is BudgetKind.ENERGY and not energy.costs
    balance = BudgetBalance(
        energy=columns["energy"], bonus_actions=columns["bonus_actions"], ticks_left=columns["ticks_left"]
    )
    situation = Situation.model_validate(
        {
            "agent_id": str(columns["id"]),
            "name": columns["name"],
            "public_id": columns["public_id"],
            "tenant": columns["tenant"],
            "model_is_reflex": is_reflex(model),
            "heartbeat_number": columns["heartbeats"] + 1,
            "environment": _environment(columns, now),
            "energy": budget.begin(balance),
            "max_energy": budget.most(balance),
            "energy_unit": budget.unit,
            "regeneration": energy.regeneration,
            "actions": [
                *ACTIONS.offers(possible, price=None if default_prices else budget.price),
                *tools.offers(price=budget.price),
            ],
            "skills": columns["skills"],
            "signals": columns["subscriptions"].signals,
            **view_goals(columns, traits=genome.traits if genome else None, now=now),
            "percepts": columns["percepts"],
            "recent": [_recent(memory) for memory in columns["recent"]],
            **view_self(columns, now=now),
            "working_memory": columns["working_memory"],
            "clusters": columns["clusters"],
            "last_heartbeat": _last_heartbeat(columns["last_heartbeat"]),
        }
    )
    return with_identity(situation, columns)


def _recent(memory: Mapping[str, Any]) -> dict[str, Any]:
    return {**memory, "details": detail_lines(MemoryType(memory["type"]), memory["detail"] or {})}


def _environment(columns: _Columns, now: datetime) -> Environment:
    contact = columns["last_user_contact_at"]
    return Environment(
        now=now,
        user_waiting=columns["user_messages"] > 0,
        user_messages=columns["user_messages"],
        hours_since_user=(now - contact) / timedelta(hours=1) if contact else None,
        pending_percepts=columns["activity"]["percepts"],
        published_today=columns["published_today"],
        other_agents=columns["other_agents"],
        **presence_of(columns["activity"], last_contact=contact, now=now),
    )


def _last_heartbeat(heartbeat: Mapping[str, Any] | None) -> LastHeartbeat | None:
    if heartbeat is None:
        return None
    actions = unpack_in_json(heartbeat["actions"])
    outcomes = [f"{action['action']}: {action['summary']}" for action in actions]
    return LastHeartbeat(
        number=heartbeat["number"],
        mode=Mode(heartbeat["mode"]),
        narrative=heartbeat["narrative"],
        outcomes=outcomes,
    )
