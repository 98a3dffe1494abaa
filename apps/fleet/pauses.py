"""Pause and resume all agents of a tenant, and suspend and resume all tenants, each act audited."""

from __future__ import annotations

from datetime import timedelta
from itertools import batched
from uuid import UUID

from django.db import transaction
from django.db.models import F, Q, QuerySet
from django.db.models.functions import Now, Random

from apps.agents.models import Agent, HeartbeatSchedule, ScheduleState
from apps.audit.models import AuditAction, AuditEvent, PlatformEvent
from apps.audit.services import record, record_platform
from apps.fleet.administration import resume_tenant, suspend_tenant
from apps.signals.services.emission import emit
from apps.tenants.models import Tenant, TenantStatus
from apps.tenants.scope import APP, OPS
from apps.tenants.services import require_active
from arbor.agents.endorsement import EndorsementStatus
from arbor.agents.lifecycle import AgentStatus
from arbor.errors import Invalid
from arbor.quotations import clip_line, counted
from arbor.signals import SignalName, signal

#: Agents at most that `pause_all_agents` records as paused before, so that `resume_all_agents` leaves them paused.
MAX_REMEMBERED = 5_000
#: Agents that a statement changes; PostgreSQL accepts 65,535 parameters.
_BATCH = 10_000
_PAUSE, _RESUME = "pause_all", "resume_all"
_SUSPEND = "suspend_all"


def pause_all_agents(*, actor: str, reason: str = "") -> int:
    """Pause all active agents of the current tenant, and return their number; running heartbeats are finished."""
    with transaction.atomic(using=APP):
        _lock_schedules(AgentStatus.ACTIVE)
        earlier = (
            _paused_one_by_one(_last_pause()).order_by("id").values_list("id", flat=True)[:MAX_REMEMBERED]
        )
        paused_before = [str(agent_id) for agent_id in earlier]
        agents = _names_of(Agent.objects.filter(status=AgentStatus.ACTIVE))
        for ids in batched(agents, _BATCH, strict=False):
            Agent.objects.filter(id__in=ids).update(status=AgentStatus.PAUSED)
        HeartbeatSchedule.objects.filter(agent__status=AgentStatus.PAUSED, state=ScheduleState.IDLE).update(
            state=ScheduleState.OFF, slot_at=None
        )
        record(
            action=AuditAction.AGENT_PAUSED,
            actor=actor,
            message=f"paused all active agents ({len(agents):,}){_because(reason)}",
            detail={
                "act": _PAUSE,
                "agents": len(agents),
                "paused_before": paused_before,
            },
        )
        _emit_each(SignalName.AGENT_PAUSED, agents, actor=actor)
    return len(agents)


def resume_all_agents(*, actor: str) -> int:
    """Resume the agents of the current tenant that the last `pause_all_agents` paused, and return their number.

    Agents that were paused alone since, and up to MAX_REMEMBERED that were paused alone before, stay paused; after an earlier
    resumption, no agent is resumed. The next heartbeat of each resumed agent is at a random time within its interval. Raises TransitionIllegal for a suspended tenant.
    """
    with transaction.atomic(using=APP):
        require_active()
        _lock_schedules(AgentStatus.PAUSED)
        last = _last_pause()
        paused = Agent.objects.filter(status=AgentStatus.PAUSED).exclude(
            id__in=_paused_one_by_one(last).values("id")
        )
        agents = _names_of(paused)
        # An agent whose identity is suspended has no heartbeats before the identity is reinstated.
        schedules = HeartbeatSchedule.objects.filter(agent__endorsement__status=EndorsementStatus.ACTIVE)
        for ids in batched(agents, _BATCH, strict=False):
            Agent.objects.filter(id__in=ids).update(status=AgentStatus.ACTIVE)
            schedules.filter(agent_id__in=ids, state=ScheduleState.OFF).update(
                state=ScheduleState.IDLE,
                attempts=0,
                next_due_at=Now() + F("interval_s") * Random() * timedelta(seconds=1),
            )
        record(
            action=AuditAction.AGENT_RESUMED,
            actor=actor,
            message=f"resumed {counted(len(agents), 'paused agent')}",
            detail={"act": _RESUME, "agents": len(agents)},
        )
        _emit_each(SignalName.AGENT_RESUMED, agents, actor=actor)
    return len(agents)


def suspend_all_tenants(*, actor: str, reason: str) -> list[str]:
    """Suspend all active tenants of the installation, and return their slugs. Raises Invalid without a reason.

    Tenants that an earlier call suspended stay among those that `resume_all_tenants` resumes.
    """
    if not reason.strip():
        raise Invalid("suspending all tenants needs a reason")
    with transaction.atomic(using=OPS):
        earlier = _suspended_together()
        slugs = list(
            Tenant.objects.using(OPS)
            .filter(status=TenantStatus.ACTIVE)
            .order_by("id")
            .values_list("slug", flat=True)
        )
        for slug in slugs:
            suspend_tenant(slug=slug, actor=actor)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"suspended all active tenants ({len(slugs):,}){_because(reason)}",
            detail={"act": _SUSPEND, "tenants": [*earlier, *slugs]},
        )
    return slugs


def resume_all_tenants(*, actor: str) -> list[str]:
    """Resume the tenants that `suspend_all_tenants` has suspended and nobody has resumed since, and return their slugs."""
    with transaction.atomic(using=OPS):
        slugs = _suspended_together()
        for slug in slugs:
            resume_tenant(slug=slug, actor=actor)
        record_platform(
            action=AuditAction.OPERATOR_ACT,
            actor=actor,
            message=f"resumed the tenants that were suspended together ({len(slugs):,})",
            detail={"act": _RESUME, "tenants": slugs},
        )
    return slugs


def _names_of(agents: QuerySet[Agent]) -> dict[UUID, str]:
    """Lock agents, after their schedules, and return their names by id."""
    locked = agents.order_by("id").select_for_update(of=("self",), no_key=True)
    return dict(locked.values_list("id", "name"))


def _emit_each(name: SignalName, agents: dict[UUID, str], *, actor: str) -> None:
    """Emit a signal of each agent, as if it had been paused or resumed alone."""
    emit(*(signal(name, agent_id, name=agent_name, actor=actor) for agent_id, agent_name in agents.items()))


def _lock_schedules(status: AgentStatus) -> None:
    """Lock the schedules of the agents with a status, as their heartbeats do before they lock anything else."""
    schedules = HeartbeatSchedule.objects.select_for_update(of=("self",)).filter(agent__status=status)
    list(schedules.order_by("agent_id").values_list("epoch"))


def _suspended_together() -> list[str]:
    """Return the slugs of the suspended tenants that `resume_all_tenants` would resume now."""
    acts = PlatformEvent.objects.using(OPS).filter(
        action=AuditAction.OPERATOR_ACT, detail__act__in=[_SUSPEND, _RESUME]
    )
    last = acts.order_by("-id").first()
    if last is None or last.detail["act"] != _SUSPEND:
        return []
    resumed = PlatformEvent.objects.using(OPS).filter(
        action=AuditAction.OPERATOR_ACT, id__gt=last.id, after__status=TenantStatus.ACTIVE
    )
    suspended = Tenant.objects.using(OPS).filter(
        slug__in=last.detail["tenants"], status=TenantStatus.SUSPENDED
    )
    suspended = suspended.exclude(id__in=list(resumed.values_list("detail__tenant_id", flat=True)))
    return list(suspended.order_by("id").values_list("slug", flat=True))


def _paused_one_by_one(last: AuditEvent | None) -> QuerySet[Agent]:
    """Return the paused agents that the last pause of all, if it is still in force, did not pause."""
    paused = Agent.objects.filter(status=AgentStatus.PAUSED)
    if last is not None:
        since = AuditEvent.objects.filter(
            action=AuditAction.AGENT_PAUSED, agent_id__isnull=False, at__gt=last.at
        )
        paused = paused.filter(Q(id__in=last.detail["paused_before"]) | Q(id__in=since.values("agent_id")))
    return paused


def _last_pause() -> AuditEvent | None:
    """Return the record of the last pause of all agents; None after a resumption."""
    acts = AuditEvent.objects.filter(
        action__in=[AuditAction.AGENT_PAUSED, AuditAction.AGENT_RESUMED], agent_id__isnull=True
    )
    last: AuditEvent | None = acts.filter(detail__act__in=[_PAUSE, _RESUME]).order_by("-at").first()
    return last if last is not None and last.detail["act"] == _PAUSE else None


def _because(reason: str) -> str:
    line = clip_line(reason, 300)
    return f": {line}" if line else ""
