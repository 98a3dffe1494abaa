"""The health of maintenance: metrics, their limits, and the remedies (seed 004, 9.5)."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from types import MappingProxyType

from arbor.errors import ConfigurationInvalid
from arbor.setting_lists import name_values


class HealthState(StrEnum):
    """The states of a metric, and of all metrics together."""

    #: Within its limits.
    OK = "ok"
    #: A person should know.
    WARN = "warn"
    #: A person should act.
    CRITICAL = "critical"

    @property
    def rank(self) -> int:
        """The position among the states, 0 to 2: the higher, the worse."""
        return list(HealthState).index(self)


class Metric(StrEnum):
    """The metrics that are watched."""

    STALE_NEIGHBORHOODS = "stale_neighborhoods"
    UNSUMMARIZED_EPISODES = "unsummarized_episodes"
    UNEMBEDDED = "unembedded"
    UNREADABLE = "unreadable"
    UNCLUSTERED = "unclustered"
    UNEXTRACTED = "unextracted"
    UNWEIGHED = "unweighed"
    STALE_CLUSTERS = "stale_clusters"
    FAILED_MAINTENANCE_CALLS = "failed_maintenance_calls"
    OTHER_EMBEDDER = "other_embedder"
    FAILING_EMBEDDERS = "failing_embedders"
    EXPIRED = "expired"
    BUFFER_EXPIRED = "buffer_expired"
    OVERDUE_FORGETTING = "overdue_forgetting"


@dataclass(frozen=True, kw_only=True)
class Limit:
    """The values from which a metric warns and is critical; infinity: never. Raises ConfigurationInvalid."""

    warn: float
    critical: float

    def __post_init__(self) -> None:
        if not 0 < self.warn <= self.critical:
            raise ConfigurationInvalid(
                f"a limit is WARN:CRITICAL, both above 0 and the second not below the first, got {self}"
            )

    def __str__(self) -> str:
        return f"{self.warn:g}:{self.critical:g}"


@dataclass(frozen=True, kw_only=True)
class MetricRule:
    """The title of a metric, its limits, the value that they apply to, and the remedy when it is too high."""

    title: str
    limit: Limit
    remedy: str
    #: The limits apply to the age of the oldest, in seconds, or to the most of one agent; else to the count.
    by_age: bool = False
    by_agent: bool = False
    #: All rows are counted; else counting stops at a bound.
    counts_all: bool = False


_MINUTE, _HOUR, _DAY = 60.0, 3600.0, 86_400.0
_WORKERS = "see that a worker serves `{queue}` (`arbor status`), and give it more processes"

#: The first two limits are those of seed 004, which has a database for each agent; so they apply to one agent.
METRIC_RULES: Mapping[Metric, MetricRule] = MappingProxyType(
    {
        Metric.STALE_NEIGHBORHOODS: MetricRule(
            title="neighborhoods stale or missing",
            limit=Limit(warn=100, critical=10_000),
            by_agent=True,
            remedy=_WORKERS.format(queue="neighborhoods"),
        ),
        Metric.UNSUMMARIZED_EPISODES: MetricRule(
            title="closed episodes without a summary",
            limit=Limit(warn=10, critical=100),
            by_agent=True,
            remedy="see that workers serve `episodes` and `llm`, and that ARBOR_MAINTENANCE_MODEL answers",
        ),
        Metric.UNEMBEDDED: MetricRule(
            title="texts without a vector",
            limit=Limit(warn=5 * _MINUTE, critical=_HOUR),
            by_age=True,
            remedy="see that the embedder answers (`arbor doctor`) and that a worker serves `embedding`",
        ),
        Metric.UNREADABLE: MetricRule(
            title="texts that their embedder refused",
            limit=Limit(warn=100, critical=math.inf),
            remedy="they are found by their words alone; a model with a longer context may read them (`arbor memory reembed`)",
        ),
        Metric.UNCLUSTERED: MetricRule(
            title="memories without a cluster yet",
            limit=Limit(warn=1_000, critical=50_000),
            by_agent=True,
            remedy=_WORKERS.format(queue="consolidation"),
        ),
        Metric.UNEXTRACTED: MetricRule(
            title="memories that wait for the extraction of concepts",
            limit=Limit(warn=1_000, critical=50_000),
            by_agent=True,
            remedy="see that workers serve `consolidation` and `llm`; rules keep up where a model does not"
            " (ARBOR_MAINTENANCE_MODEL empty)",
        ),
        Metric.UNWEIGHED: MetricRule(
            title="memories that wait for an appraisal",
            limit=Limit(warn=1_000, critical=50_000),
            by_agent=True,
            remedy="see that workers serve `consolidation` and `llm`, and that ARBOR_MAINTENANCE_MODEL answers",
        ),
        Metric.STALE_CLUSTERS: MetricRule(
            title="clusters out of date",
            limit=Limit(warn=100, critical=10_000),
            by_agent=True,
            remedy=_WORKERS.format(queue="consolidation"),
        ),
        Metric.FAILED_MAINTENANCE_CALLS: MetricRule(
            title="maintenance calls that failed for good",
            limit=Limit(warn=10, critical=1_000),
            remedy="their calls say why (console, Model calls); correct ARBOR_MAINTENANCE_MODEL or its key",
        ),
        Metric.OTHER_EMBEDDER: MetricRule(
            title="agents whose vectors are of another model than the settings name",
            limit=Limit(warn=1, critical=math.inf),
            counts_all=True,
            remedy="they still use the old model; `arbor memory reembed` moves them to the new one",
        ),
        Metric.FAILING_EMBEDDERS: MetricRule(
            title="embedders that failed when they were last asked",
            limit=Limit(warn=1, critical=math.inf),
            counts_all=True,
            remedy="`arbor doctor` shows the reason; agents recall by words, and the next attempt is within 10 minutes",
        ),
        Metric.EXPIRED: MetricRule(
            title="expired memories that are not archived yet",
            limit=Limit(warn=20 * _MINUTE, critical=6 * _HOUR),
            by_age=True,
            remedy=_WORKERS.format(queue="cleanup"),
        ),
        Metric.BUFFER_EXPIRED: MetricRule(
            title="expired buffer items that are not deleted yet",
            limit=Limit(warn=20 * _MINUTE, critical=6 * _HOUR),
            by_age=True,
            remedy=_WORKERS.format(queue="cleanup"),
        ),
        Metric.OVERDUE_FORGETTING: MetricRule(
            title="agents whose daily forgetting is late",
            limit=Limit(warn=_DAY, critical=7 * _DAY),
            by_age=True,
            counts_all=True,
            remedy="see that workers serve `decay`, `cleanup` and `consolidation`; raise ARBOR_MAINTENANCE_SHARE",
        ),
    }
)

#: The periods without a success after which a job warns and is critical, and the extra time for a slow start.
LATE_AFTER, DEAD_AFTER = 3, 10
START_ALLOWANCE_S = 5 * _MINUTE


@dataclass(frozen=True, kw_only=True)
class Figure:
    """One metric with its current value."""

    metric: Metric
    #: The count, up to the bound of counting unless the metric counts all.
    count: int
    #: The value that the limits apply to: the count, the most of one agent, or an age in seconds.
    judged: float
    limit: Limit
    state: HealthState

    @property
    def title(self) -> str:
        """The title of the metric."""
        return METRIC_RULES[self.metric].title

    @property
    def counts_all(self) -> bool:
        """Return whether the count has no bound."""
        return METRIC_RULES[self.metric].counts_all

    @property
    def remedy(self) -> str:
        """The remedy to show; empty while the state is ok."""
        return "" if self.state is HealthState.OK else METRIC_RULES[self.metric].remedy


def judge(value: float, limit: Limit) -> HealthState:
    """Return the state of a value by its limits; NaN is critical."""
    if value >= limit.critical or math.isnan(value):
        return HealthState.CRITICAL
    return HealthState.WARN if value >= limit.warn else HealthState.OK


def judge_metric(
    metric: Metric, *, count: int, most: int = 0, age_s: float = 0.0, limits: Mapping[Metric, Limit]
) -> Figure:
    """Judge a metric by its count, by the `most` of one agent, or by the age of the oldest row, `age_s`, as the metric's rule says."""
    rule = METRIC_RULES[metric]
    judged = max(0.0, age_s) if rule.by_age else float(most if rule.by_agent else count)
    limit = limits.get(metric, rule.limit)
    return Figure(metric=metric, count=count, judged=judged, limit=limit, state=judge(judged, limit))


def judge_job(
    *, period_s: float, since_success_s: float | None, since_first_s: float, failed: int = 0
) -> HealthState:
    """Return the state of a job that should run every `period_s`, by the time since its last success or first due time.

    A run with `failed` steps warns too, however recent. A job without a period is switched off, which is no fault.
    """
    if period_s <= 0:
        return HealthState.OK
    since = since_first_s if since_success_s is None else since_success_s
    limit = Limit(
        warn=LATE_AFTER * period_s + START_ALLOWANCE_S, critical=DEAD_AFTER * period_s + START_ALLOWANCE_S
    )
    return worst([judge(max(0.0, since), limit), HealthState.WARN if failed else HealthState.OK])


def parse_limits(text: str) -> dict[Metric, Limit]:
    """Parse limits such as `stale_neighborhoods=200:5000, expired=3600:inf`. Raises ConfigurationInvalid."""
    limits: dict[Metric, Limit] = {}
    for entry, name, values in name_values(text, setting="ARBOR_HEALTH_LIMITS"):
        warn, _, critical = values.partition(":")
        try:
            limits[Metric(name)] = Limit(warn=float(warn), critical=float(critical))
        except ValueError as error:
            known = ", ".join(Metric)
            raise ConfigurationInvalid(
                f"ARBOR_HEALTH_LIMITS has NAME=WARN:CRITICAL, separated by commas, got {entry!r}; names are {known}"
            ) from error
        except ConfigurationInvalid as error:
            raise ConfigurationInvalid(f"ARBOR_HEALTH_LIMITS has {entry!r}: {error}") from error
    return limits


def worst(states: list[HealthState]) -> HealthState:
    """Return the worst of the states; ok without any."""
    return max(states, key=lambda state: state.rank, default=HealthState.OK)
