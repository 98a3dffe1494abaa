"""Choose the active skills of agents: by a person, or at birth by the template."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from types import MappingProxyType
from uuid import UUID

from django.db import transaction
from django.db.models import QuerySet

from apps.agents.models import Agent
from apps.agents.services.locks import lock_agent_row
from apps.agents.services.lookup import agent_by_id
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.knowledge.models import AgentSkill, Skill
from apps.knowledge.services.skill_room import (
    check_agent_has_room,
    check_agents_have_room,
    lock_skill_sizes_shared,
    tokens_of,
)
from apps.knowledge.services.skills import FoundSkill, SkillOrigin, emit_changed, find_skills
from apps.signals.services.emission import emit
from apps.tenants.scope import current_tenant
from arbor.errors import Invalid, LimitReached
from arbor.knowledge.skills import check_choice
from arbor.signals import SignalName, signal


def active_skills(agent_id: UUID) -> list[FoundSkill]:
    """Return the active skills of an agent in the order of its prompt. Raises NotFound."""
    retained = dict(_rows_of(agent_by_id(agent_id).id).values_list("name", "retained_digest"))
    return [
        replace(skill, retained_digest=retained[skill.name]) if skill.origin is SkillOrigin.GLOBAL else skill
        for skill in find_skills(list(retained))
    ]


@transaction.atomic
def choose_skills(*, agent_id: UUID, names: Sequence[str], actor: str) -> list[FoundSkill]:
    """Set the active skills of an agent; its prompts have them in this order from the next one on.

    The agent keeps the earlier versions that it uses if the latest ones do not fit. Raises NotFound, Invalid for a skill that was
    withdrawn, and LimitReached for more than five skills or for skills that do not fit the window of one of the agent's models.
    """
    agent = agent_by_id(agent_id)
    lock_agent_row(agent.id)
    lock_skill_sizes_shared()
    names = [name.strip() for name in names]
    retained = dict(_rows_of(agent.id).values_list("name", "retained_digest"))
    before = list(retained)
    if names == before:
        update_skill_versions(agent, actor=actor)
        return active_skills(agent.id)
    _find_to_choose(names, before)
    AgentSkill.objects.filter(agent_id=agent.id).delete()
    AgentSkill.objects.bulk_create(_new_rows(agent, names, retained))
    update_skill_versions(agent, actor=actor)
    record(
        action=AuditAction.SKILL_CHANGED,
        actor=actor,
        agent_id=agent.id,
        message=f"{agent.name} uses {', '.join(names) or 'no skills'}",
        detail={"before": before, "after": names},
    )
    emit(signal(SignalName.AGENT_SKILLS_CHOSEN, agent.id, skills=names, actor=actor))
    return active_skills(agent.id)


def update_skill_versions(agent: Agent, *, actor: str) -> None:
    """Switch an agent whose skills or models changed to the latest versions of its skills, or check that those in use fit its models.

    The versions in use stay if the latest ones do not fit. The caller has locked the agent. Raises LimitReached.
    """
    if not use_latest_versions(agent, actor=actor):
        check_agents_have_room([agent], changed={})


def use_latest_versions(agent: Agent, *, actor: str) -> bool:
    """Switch an agent to the latest versions of its skills if they fit its models; return whether they fit. The caller has locked the agent."""
    lock_skill_sizes_shared()
    try:
        check_agent_has_room(agent, tokens_of(_rows_of(agent.id).values_list("name", flat=True)))
    except LimitReached:
        return False
    retained = list(_rows_of(agent.id).exclude(retained_digest="").values_list("name", flat=True))
    if retained:
        AgentSkill.objects.filter(agent_id=agent.id).update(retained_digest="")
        for skill in find_skills(retained):
            emit_changed([agent], name=skill.name, digest=skill.digest, actor=actor)
    return True


def create_skills(agents: Sequence[Agent], *, names: Sequence[str]) -> None:
    """Activate a template's skills for its new agents. Raises the same errors as `choose_skills`."""
    if not names:
        return
    lock_skill_sizes_shared()
    chosen = _find_to_choose(list(names), [])
    tokens = {skill.name: skill.tokens for skill in chosen}
    # Agents of one template differ in their models only.
    for agent in {agent.model: agent for agent in agents}.values():
        check_agent_has_room(agent, tokens)
    AgentSkill.objects.bulk_create([row for agent in agents for row in _new_rows(agent, names)])


def _find_to_choose(names: Sequence[str], before: Sequence[str]) -> list[FoundSkill]:
    """Find skills that an agent is to use, and lock the tenant's own among them, so that none is deleted meanwhile."""
    check_choice(names)
    list(Skill.objects.select_for_update(no_key=True).filter(name__in=names).order_by("id"))
    chosen = find_skills(names)
    for skill in chosen:
        if not skill.is_present and skill.name not in before:
            raise Invalid(
                f"the skill {skill.name} is no longer in the installation's folder; only agents that use it already keep it"
            )
    return chosen


def _new_rows(
    agent: Agent, names: Sequence[str], retained: Mapping[str, str] = MappingProxyType({})
) -> list[AgentSkill]:
    return [
        AgentSkill(
            tenant_id=current_tenant(),
            agent=agent,
            position=position,
            name=name,
            retained_digest=retained.get(name, ""),
        )
        for position, name in enumerate(names, start=1)
    ]


def _rows_of(agent_id: UUID) -> QuerySet[AgentSkill]:
    return AgentSkill.objects.filter(agent_id=agent_id).order_by("position")
