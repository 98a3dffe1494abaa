"""Agents and templates in the operator's console."""

from apps.agents.admin.agents import AgentAdmin
from apps.agents.admin.parts import AgentKeyAdmin, AgentPolicyAdmin, AgentStateAdmin
from apps.agents.admin.templates import BuiltinTemplateAdmin, TemplateAdmin

__all__ = [
    "AgentAdmin",
    "AgentKeyAdmin",
    "AgentPolicyAdmin",
    "AgentStateAdmin",
    "BuiltinTemplateAdmin",
    "TemplateAdmin",
]
