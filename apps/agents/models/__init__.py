"""Models of agents: templates, identities, state, schedules, percepts."""

from apps.agents.models.agents import Agent, AgentPolicy, AgentState, BuiltinTemplate, Template
from apps.agents.models.identities import AgentEndorsement, AgentKey, AuthorityKey, RequestedCapability
from apps.agents.models.percepts import Percept, PerceptKind
from apps.agents.models.schedules import DUE_AT, HeartbeatSchedule, ScheduleState, Trigger

__all__ = [
    "DUE_AT",
    "Agent",
    "AgentEndorsement",
    "AgentKey",
    "AgentPolicy",
    "AgentState",
    "AuthorityKey",
    "BuiltinTemplate",
    "HeartbeatSchedule",
    "Percept",
    "PerceptKind",
    "RequestedCapability",
    "ScheduleState",
    "Template",
    "Trigger",
]
