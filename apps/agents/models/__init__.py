"""Models of agents: templates, identities, state, schedules, percepts."""

from apps.agents.models.agents import Agent, AgentKey, AgentPolicy, AgentState, BuiltinTemplate, Template
from apps.agents.models.percepts import Percept, PerceptKind
from apps.agents.models.schedules import DUE_AT, HeartbeatSchedule, ScheduleState, Trigger

__all__ = [
    "DUE_AT",
    "Agent",
    "AgentKey",
    "AgentPolicy",
    "AgentState",
    "BuiltinTemplate",
    "HeartbeatSchedule",
    "Percept",
    "PerceptKind",
    "ScheduleState",
    "Template",
    "Trigger",
]
