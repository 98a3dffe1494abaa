"""The health of maintenance in the whole installation, from counts over all tenants, read every minute."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.conf import settings
from django.db import connections
from django.db.models.functions import Now

from apps.audit.models import AuditAction, PlatformEvent
from apps.audit.services import record_platform
from apps.memories.models import JobRun
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.jobs import queries
from apps.tenants.scope import OPS
from arbor.errors import ConfigurationInvalid
from arbor.memory.maintenance.health import (
    METRIC_RULES,
    Figure,
    HealthState,
    Metric,
    judge_job,
    judge_metric,
    worst,
)
from arbor.quotations import bounded

#: The count at which counting stops; higher counts would be judged in the same way.
MAX_COUNTED = 20_000

log = structlog.get_logger(__name__)
ACTOR = "system:health"
#: The most findings that one audit record lists, the worst first.
_MAX_FINDINGS = 20
#: The shown state of a job that is switched off.
OFF = "off"


@dataclass(frozen=True, kw_only=True)
class JobHealth:
    """A job's state and its last run."""

    name: str
    state: HealthState
    #: Expected seconds between two runs.
    period_s: float
    #: Seconds since the end of the last run, or since the first was expected; and since the last success; None: never.
    ended_ago_s: float
    succeeded_ago_s: float | None
    #: Duration, units of work done and failed steps of the last run.
    seconds: float
    done: int
    failed: int
    error: str
    #: Whether a run has ended.
    has_run: bool

    @property
    def is_off(self) -> bool:
        """Return whether the scheduler no longer publishes the job."""
        return self.period_s <= 0

    @property
    def shown_state(self) -> str:
        """The state, or `off`."""
        return OFF if self.is_off else self.state.value

    @property
    def remedy(self) -> str:
        """The remedy for a person; empty while the state is ok."""
        if self.state is HealthState.OK:
            return ""
        if self.error:
            why = f"it ends with {self.error}: see its worker's log"
        elif self.is_idle:
            why = "check that its worker and the scheduler run"
        else:
            why = "`maintenance_failed` in its worker's log names the agents and the errors; the next run tries them again"
        return f"{why} (`arbor status`)"

    @property
    def idle_s(self) -> float:
        """The seconds since the last success, or since the end of the last run if no run succeeded."""
        return self.ended_ago_s if self.succeeded_ago_s is None else self.succeeded_ago_s

    @property
    def is_idle(self) -> bool:
        """Return whether the last success is too long ago, regardless of failed steps of the last run."""
        state = judge_job(period_s=self.period_s, since_success_s=self.idle_s, since_first_s=self.idle_s)
        return state is not HealthState.OK

    @property
    def finding(self) -> str:
        """The problem with the job, in words for people."""
        if self.failed and not self.is_idle and not self.error:
            return f"the last run of the job {self.name} failed for {self.failed:,} of its steps"
        return f"the job {self.name} has not succeeded for {_span(self.idle_s)}"


@dataclass(frozen=True, kw_only=True)
class Health:
    """The health of maintenance."""

    figures: tuple[Figure, ...]
    jobs: tuple[JobHealth, ...]

    @property
    def state(self) -> HealthState:
        """The worst state of all figures and jobs."""
        return worst([figure.state for figure in self.figures] + [job.state for job in self.jobs])

    @property
    def findings(self) -> list[tuple[HealthState, str, str]]:
        """Problems with their state and remedy, the worst first."""
        findings = [
            (figure.state, _describe(figure), figure.remedy)
            for figure in self.figures
            if figure.state is not HealthState.OK
        ]
        findings += [
            (job.state, job.finding, job.remedy) for job in self.jobs if job.state is not HealthState.OK
        ]
        return sorted(findings, key=lambda finding: -finding[0].rank)

    def as_json(self) -> dict[str, Any]:
        """Return the health as a JSON object."""
        return {
            "state": self.state.value,
            "findings": [
                {"state": state.value, "what": what, "remedy": remedy}
                for state, what, remedy in self.findings
            ],
            "figures": {
                figure.metric.value: {
                    "count": figure.count,
                    "judged": figure.judged,
                    "limit": str(figure.limit),
                    "state": figure.state.value,
                    "remedy": figure.remedy,
                }
                for figure in self.figures
            },
            "jobs": {
                job.name: {
                    "state": job.shown_state,
                    "period_s": job.period_s,
                    "ended_ago_s": round(job.ended_ago_s, 1),
                    "succeeded_ago_s": None if job.succeeded_ago_s is None else round(job.succeeded_ago_s, 1),
                    "seconds": round(job.seconds, 3),
                    "done": job.done,
                    "failed": job.failed,
                    "error": job.error,
                }
                for job in self.jobs
            },
        }


def read_health() -> Health:
    """Read the health from the rows of all tenants. Four queries; counts stop at MAX_COUNTED rows unless the metric counts all."""
    limits = settings.ARBOR_HEALTH_LIMITS
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.COUNT_BY_AGENT, {"counted": MAX_COUNTED})
        of_agents = {kind: (int(count), int(most)) for kind, count, most in cursor.fetchall()}
        cursor.execute(queries.COUNT_BY_AGE, {"counted": MAX_COUNTED})
        of_age = {
            kind: (int(count), _ago(since, now) or 0.0) for kind, count, since, now in cursor.fetchall()
        }
        cursor.execute(queries.COUNT_FAULTS, {"counted": MAX_COUNTED, **_installation_values()})
        unreadable, failed, other, failing = cursor.fetchone()
    runs = JobRun.objects.using(OPS).order_by("name").annotate(read_at=Now())
    jobs = tuple(_job_health(run, run.read_at) for run in runs)
    counts = {
        Metric.UNREADABLE: unreadable,
        Metric.FAILED_MAINTENANCE_CALLS: failed,
        Metric.OTHER_EMBEDDER: other,
        Metric.FAILING_EMBEDDERS: failing,
    }
    figures = []
    for metric in Metric:
        count, most = of_agents.get(metric.value, (0, 0))
        count, age_s = of_age.get(metric.value, (count, 0.0))
        figures.append(
            judge_metric(metric, count=counts.get(metric, count), most=most, age_s=age_s, limits=limits)
        )
    return Health(figures=tuple(figures), jobs=jobs)


def _installation_values() -> dict[str, Any]:
    try:
        model = installation_model()
    except ConfigurationInvalid:
        # `arbor doctor` reports the invalid model; no agent can be compared with it.
        return {"model": "", "dimension": 0}
    return {"model": model.name, "dimension": model.dimension}


def _job_health(run: JobRun, now: datetime) -> JobHealth:
    since = _ago(run.succeeded_at, now)
    return JobHealth(
        name=run.name,
        state=judge_job(
            period_s=run.period_s,
            since_success_s=since,
            since_first_s=_ago(run.first_at, now) or 0.0,
            failed=run.failed,
        ),
        period_s=run.period_s,
        ended_ago_s=_ago(run.ended_at, now) or 0.0,
        succeeded_ago_s=since,
        seconds=run.seconds,
        done=run.done,
        failed=run.failed,
        error=run.error,
        has_run=run.has_run,
    )


def _ago(moment: datetime | None, now: datetime) -> float | None:
    """Return the seconds since a moment, 0 for one in the future, after a clock was set back."""
    return None if moment is None else max(0.0, (now - moment).total_seconds())


def _describe(figure: Figure) -> str:
    count = f"{figure.count:,}" if figure.counts_all else bounded(figure.count, MAX_COUNTED)
    # The count comes last, because a title is a plural.
    if METRIC_RULES[figure.metric].by_age:
        return f"{figure.title}: {count} (the oldest for {_span(figure.judged)})"
    if figure.judged == figure.count:
        return f"{figure.title}: {count}"
    return f"{figure.title}: {count} ({figure.judged:,.0f} of one agent)"


def _span(seconds: float) -> str:
    for name, length in (("d", 86_400), ("h", 3_600), ("min", 60)):
        if seconds >= length:
            return f"{seconds / length:.0f} {name}"
    return f"{seconds:.0f} s"


def watch_health() -> HealthState:
    """Read the health and return its state; log the first state and each change, and record them in the audit log."""
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
    findings = health.as_json()["findings"][:_MAX_FINDINGS]
    write = log.info if health.state is HealthState.OK else log.warning
    write("health_changed", state=health.state.value, was=last and last.value, findings=findings)
    record_platform(
        action=AuditAction.HEALTH_CHANGED,
        actor=ACTOR,
        message=f"health is {health.state.value}" + (f", and was {last.value}" if last else ""),
        detail={"state": health.state.value, "was": last and last.value, "findings": findings},
    )
