"""Read the recall explorer: ranked memories with their score components. Nothing is counted as a use."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from apps.agents.models import Agent
from apps.console.forms import agent_choices, chosen_agent
from apps.memories.services.recall.explanation import Absence, Explanation, explain_recall
from arbor.errors import Invalid
from arbor.ids import read_id
from arbor.memory.recall.recall_request import QUERY_LENGTH, RecallFilter, RecallRequest
from arbor.memory.values import MemoryType, Recalled, ScoreComponents

#: The choices of the form: numbers of memories, and ages in days.
LIMITS = (10, 20, 50, 100)
AGES: Mapping[str, str] = {
    "": "of any age",
    "1": "of the last day",
    "7": "of the last week",
    "30": "of the last month",
    "365": "of the last year",
}
#: A component above this value has a segment of its own in the bar of a score.
_MIN_SHOWN = 0.002


@dataclass(frozen=True, kw_only=True)
class Segment:
    """One component in the bar of a score; its place and width are percent of the best score."""

    name: str
    value: float
    x: float
    width: float


@dataclass(frozen=True, kw_only=True)
class RecallRow:
    """A recalled memory with the bar of its score."""

    place: int
    memory: Recalled
    segments: Sequence[Segment]


@dataclass(frozen=True, kw_only=True)
class RecallPage:
    """The recall explorer: the form's values, and the answer, if something was asked."""

    agents: Sequence[tuple[str, str]]
    agent: Agent | None
    query: str
    types: Sequence[str]
    min_importance: str
    min_trust: str
    days: str
    limit: int
    absent_id: str
    problem: str = ""
    rows: Sequence[RecallRow] = ()
    answered: bool = False
    compared: bool = True
    absence: Absence | None = None
    absence_segments: Sequence[Segment] = ()

    query_length = QUERY_LENGTH
    all_types = tuple(kind.value for kind in MemoryType)
    ages = tuple(AGES.items())
    limits = LIMITS


def read_recall(parameters: Any, *, tenant_id: UUID) -> RecallPage:
    """Read the explorer for the parameters of its address, a QueryDict."""
    agent = chosen_agent(parameters)
    asked: dict[str, Any] = {
        "agents": agent_choices(),
        "agent": agent,
        "query": parameters.get("q", "").strip(),
        "types": [name for name in parameters.getlist("type") if name in MemoryType],
        "min_importance": parameters.get("importance", ""),
        "min_trust": parameters.get("trust", ""),
        "days": parameters.get("days", "") if parameters.get("days", "") in AGES else "",
        "limit": _limit(parameters.get("limit", "")),
        "absent_id": parameters.get("missing", "").strip(),
    }
    if agent is None or not asked["query"]:
        missing_agent = bool(asked["query"]) and agent is None
        return RecallPage(**asked, problem="Choose an agent first." if missing_agent else "")
    try:
        explanation = _explain(tenant_id, agent.id, asked)
    except Invalid as refusal:
        return RecallPage(**asked, problem=f"Nothing was recalled: {refusal}.")
    return _answered(asked, explanation)


def _explain(tenant_id: UUID, agent_id: UUID, asked: Mapping[str, Any]) -> Explanation:
    absent = read_id(asked["absent_id"])
    if asked["absent_id"] and absent is None:
        raise Invalid(f"{asked['absent_id'][:60]!r} is no id of a memory")
    now = datetime.now(UTC)
    request = RecallRequest(
        agent_id=agent_id,
        text=asked["query"],
        limit=asked["limit"],
        now=now,
        only=RecallFilter(
            types=frozenset(MemoryType(name) for name in asked["types"]),
            since=now - timedelta(days=int(asked["days"])) if asked["days"] else None,
            min_importance=_share("importance", asked["min_importance"]),
            min_trust=_share("trust", asked["min_trust"]),
        ),
    )
    return explain_recall(tenant_id=tenant_id, request=request, absent=absent)


def _answered(asked: Mapping[str, Any], explanation: Explanation) -> RecallPage:
    absence = explanation.absence
    best = max((memory.score for memory in explanation.recalled), default=0.0)
    if absence is not None and absence.components is not None:
        best = max(best, absence.components.total)
    return RecallPage(
        **asked,
        answered=True,
        compared=explanation.compared,
        rows=[
            RecallRow(place=place, memory=memory, segments=_segments(memory.components, best))
            for place, memory in enumerate(explanation.recalled, start=1)
        ],
        absence=absence,
        absence_segments=_segments(absence.components, best) if absence and absence.components else (),
    )


def _segments(components: ScoreComponents, best: float) -> list[Segment]:
    """Return the components of a score as segments, one after the other, the best score being 100 wide."""
    segments: list[Segment] = []
    x = 0.0
    for name, value in components.as_dict().items():
        if value <= _MIN_SHOWN or best <= 0:
            continue
        width = 100 * value / best
        segments.append(Segment(name=name, value=value, x=round(x, 2), width=round(width, 2)))
        x += width
    return segments


def _limit(text: str) -> int:
    return int(text) if text in {str(limit) for limit in LIMITS} else LIMITS[0]


def _share(name: str, text: str) -> float:
    try:
        return float(text) if text.strip() else 0.0
    except ValueError as error:
        raise Invalid(f"the least {name} must be a number from 0 to 1, got {text[:20]!r}") from error
