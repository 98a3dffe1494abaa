"""Watch the health of maintenance: compute it every minute, and record each change of its state once."""

from __future__ import annotations

import structlog

from apps.audit.models import AuditAction, PlatformEvent
from apps.audit.services import record_platform
from apps.memories.services.jobs.health import Health, read_health
from apps.tenants.scope import OPS
from arbor.memory.health import HealthState

log = structlog.get_logger(__name__)

ACTOR = "system:health"
#: Findings that one record names, the worst first.
_NAMED = 20


def watch_health() -> HealthState:
    """Compute the figures; where the state is another than the last one on record, log it and put it on record.

    The first look is a change too. Returns the state.
    """
    health = read_health()
    last = _last_state()
    if health.state is not last:
        _record_change(health, last)
    return health.state


def _last_state() -> HealthState | None:
    events = PlatformEvent.objects.using(OPS).filter(action=AuditAction.HEALTH_CHANGED)
    detail = events.order_by("-id").values_list("detail", flat=True).first()
    return HealthState(detail["state"]) if detail else None


def _record_change(health: Health, last: HealthState | None) -> None:
    findings = [
        {"state": state.value, "what": what, "remedy": remedy}
        for state, what, remedy in health.findings[:_NAMED]
    ]
    write = log.info if health.state is HealthState.OK else log.warning
    write("health_changed", state=health.state.value, was=last and last.value, findings=findings)
    record_platform(
        action=AuditAction.HEALTH_CHANGED,
        actor=ACTOR,
        message=f"health is {health.state.value}" + (f", and was {last.value}" if last else ""),
        detail={"state": health.state.value, "was": last and last.value, "findings": findings},
    )
