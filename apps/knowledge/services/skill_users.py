"""Apply changed global skills to the agents of all tenants that use them; an agent whose models a version does not fit keeps its own."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from uuid import UUID

from django.db.models import QuerySet

from apps.agents.models import Agent
from apps.audit.models import AuditAction, AuditEvent
from apps.audit.recording import build_event
from apps.knowledge.models import AgentSkill, Skill
from apps.knowledge.services.skill_room import check_agents_have_room
from apps.signals.services.emission import write_tenant_signals
from apps.tenants.scope import OPS, ops_scope, tenant_transaction
from arbor.audit.levels import AuditLevel
from arbor.errors import LimitReached
from arbor.signals import SignalName, signal


@dataclass(frozen=True, kw_only=True)
class SkillChange:
    """A new version of a global skill, or a file that is back: the digests before and after, and the tokens after."""

    before: str
    after: str
    tokens: int
    is_larger: bool

    @property
    def is_version(self) -> bool:
        """Return whether the text changed; otherwise the file is back unchanged."""
        return self.before != self.after


@dataclass(frozen=True, kw_only=True)
class GlobalSkillUser:
    """An agent that uses changed global skills."""

    tenant_id: UUID
    agent_id: UUID
    agent: str
    #: The version that the agent has kept so far, by skill; empty: the latest.
    retained: Mapping[str, str]
    #: The reason why the new versions do not fit the agent's models; empty: they fit.
    fault: str


def find_skill_users(changed: Mapping[str, SkillChange]) -> list[GlobalSkillUser]:
    """Find the agents of all tenants that use changed global skills, and check whether the new versions fit.

    A file that is back unchanged concerns the agents that have kept an earlier version, where the latest fits now.
    """
    if not changed:
        return []
    with ops_scope():
        rows = AgentSkill.objects.filter(name__in=changed).order_by("tenant_id")
        tenants = list(rows.values_list("tenant_id", flat=True).distinct())
    users: list[GlobalSkillUser] = []
    for tenant_id in tenants:
        with tenant_transaction(tenant_id):
            users += _users_of_tenant(changed)
    return users


def update_skill_users(
    users: Sequence[GlobalSkillUser], *, changed: Mapping[str, SkillChange], actor: str
) -> None:
    """Write the versions that the users keep, their audit records and signals, in the open transaction of the operations role."""
    events: list[AuditEvent] = []
    for tenant_id, group in groupby(users, key=lambda user: user.tenant_id):
        tenant_users = list(group)
        for user in tenant_users:
            _write_retained(user, changed)
        events += _events(tenant_id, tenant_users, changed, actor)
        write_tenant_signals(
            tenant_id,
            signals=[
                signal(
                    SignalName.AGENT_SKILL_CHANGED,
                    user.agent_id,
                    skill=name,
                    digest=changed[name].after,
                    actor=actor,
                )
                for user in tenant_users
                if not user.fault
                for name in user.retained
            ],
        )
    # Through the operations role, which changes the skills.
    audit: QuerySet[AuditEvent] = QuerySet(AuditEvent, using=OPS)
    audit.bulk_create(events)


def _users_of_tenant(changed: Mapping[str, SkillChange]) -> Iterator[GlobalSkillUser]:
    own = Skill.objects.filter(name__in=changed).values_list("name", flat=True)
    rows = AgentSkill.objects.filter(name__in=changed).exclude(name__in=own).select_related("agent")
    unchanged = {name for name, change in changed.items() if not change.is_version}
    rows = rows.exclude(name__in=unchanged, retained_digest="")
    for agent, uses in groupby(rows.order_by("agent_id", "position"), key=lambda row: row.agent):
        retained = {row.name: row.retained_digest for row in uses}
        fault = _fault(agent, retained, changed)
        if fault and retained.keys() <= unchanged:
            continue
        yield GlobalSkillUser(
            tenant_id=agent.tenant_id,
            agent_id=agent.id,
            agent=agent.name,
            retained=retained,
            fault=fault,
        )


def _fault(agent: Agent, retained: Mapping[str, str], changed: Mapping[str, SkillChange]) -> str:
    if not any(retained_digest or changed[name].is_larger for name, retained_digest in retained.items()):
        return ""
    try:
        check_agents_have_room([agent], changed={name: changed[name].tokens for name in retained})
    except LimitReached as error:
        return str(error)
    return ""


def _write_retained(user: GlobalSkillUser, changed: Mapping[str, SkillChange]) -> None:
    """Write the versions that a user keeps from now on; a version that it keeps already stays while the latest does not fit."""
    all_rows: QuerySet[AgentSkill] = QuerySet(AgentSkill, using=OPS)
    rows = all_rows.filter(tenant_id=user.tenant_id, agent_id=user.agent_id)
    for name, retained_digest in user.retained.items():
        digest = (retained_digest or changed[name].before) if user.fault else ""
        if digest != retained_digest:
            rows.filter(name=name).update(retained_digest=digest)


def _events(
    tenant_id: UUID, users: Sequence[GlobalSkillUser], changed: Mapping[str, SkillChange], actor: str
) -> Iterator[AuditEvent]:
    for name in sorted({name for user in users for name in user.retained}):
        yield build_event(
            tenant_id=tenant_id,
            action=AuditAction.SKILL_CHANGED,
            actor=actor,
            message=f"the global skill {name} {'changed' if changed[name].is_version else 'is back unchanged'}",
            detail={"skill": name, "after": changed[name].after},
        )
    for user in users:
        if user.fault:
            yield build_event(
                tenant_id=tenant_id,
                agent_id=user.agent_id,
                action=AuditAction.SKILL_CHANGED,
                actor=actor,
                level=AuditLevel.WARNING,
                message=f"{user.agent} keeps its version of {', '.join(user.retained)}: the latest does not fit",
                detail={"skills": list(user.retained), "fault": user.fault},
            )
