"""Plan the merge of what one agent learned into another: nothing of its identity, and conflicts are only reported."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from arbor.clock import to_utc
from arbor.memory.values import MemoryStatus, MemoryType
from arbor.seeds.reading import SeedRow
from arbor.selves.values import BeliefStatus

#: The sections that a merge reads.
MERGED_SECTIONS = frozenset({"memories", "pins", "beliefs", "preferences"})
#: The types of memories that are merged: knowledge. Events belong to the agent that experienced them.
LEARNED_TYPES = (MemoryType.SEMANTIC, MemoryType.PROCEDURAL, MemoryType.STRATEGIC)
#: The share of its trust and confidence that a merged memory or proposal has, because another agent learned it.
SECOND_HAND = 0.8
#: The most proposals of one merge: an agent decides about a few.
MAX_PROPOSALS = 20


@dataclass(frozen=True, kw_only=True)
class MergeConflict:
    """A row of the seed that contradicts a row of the agent; it is not merged."""

    section: str
    subject: str
    #: The value of the agent, and that of the seed.
    own: str
    other: str


@dataclass(kw_only=True)
class MergePlan:
    """The rows of a seed that are new to an agent, and those that are not merged."""

    memories: list[dict[str, Any]] = field(default_factory=list)
    beliefs: list[dict[str, Any]] = field(default_factory=list)
    preferences: list[dict[str, Any]] = field(default_factory=list)
    conflicts: list[MergeConflict] = field(default_factory=list)
    #: The number of rows that the agent has already, by section.
    known: dict[str, int] = field(default_factory=dict)
    #: Memories that have expired.
    expired: int = 0
    #: Beliefs and preferences beyond MAX_PROPOSALS.
    postponed: int = 0


@dataclass(frozen=True, kw_only=True)
class OwnKnowledge:
    """The knowledge that the agent has before a merge."""

    #: Hashes of the contents of its memories of each type, in hexadecimal.
    memories: frozenset[tuple[str, str]]
    #: Confidence and status of its beliefs by the hash of their statements, in hexadecimal.
    beliefs: Mapping[str, tuple[float, str]]
    #: Values of its preferences by key.
    preferences: Mapping[str, str]


def plan_merge(rows: Iterable[SeedRow], own: OwnKnowledge, *, now: datetime) -> MergePlan:
    """Sort the rows of a seed into new, known, expired and conflicting ones."""
    plan = MergePlan()
    pins: dict[str, dict[str, Any]] = {}
    for row in rows:
        if row.section == "memories":
            _plan_memory(plan, row.values, own, now)
        elif row.section == "pins":
            pins[row.values["memory_id"]] = _unpinned(row.values, now)
        elif row.section == "beliefs":
            _plan_belief(plan, row.values, own)
        elif row.section == "preferences":
            _plan_preference(plan, row.values, own)
    # A pin is a decision about one agent: the memories get the values from before it.
    plan.memories = [values | pins.get(values.get("id", ""), {}) for values in plan.memories]
    beliefs = sorted(plan.beliefs, key=lambda values: -float(values["confidence"]))
    room = max(0, MAX_PROPOSALS - len(plan.preferences))
    plan.postponed = max(0, len(beliefs) - room) + max(0, len(plan.preferences) - MAX_PROPOSALS)
    plan.beliefs, plan.preferences = beliefs[:room], plan.preferences[:MAX_PROPOSALS]
    return plan


def expiry_of(values: Mapping[str, Any]) -> datetime | None:
    """Return when a memory of a seed expires, in UTC."""
    return to_utc(datetime.fromisoformat(values["expires_at"])) if values["expires_at"] else None


def _is_expired(values: Mapping[str, Any], now: datetime) -> bool:
    expiry = expiry_of(values)
    return expiry is not None and expiry <= now


def _unpinned(pin: dict[str, Any], now: datetime) -> dict[str, Any]:
    """Return the values that a memory gets back from its pin: no expiry that has passed."""
    expires_at = None if _is_expired(pin, now) else pin["expires_at"]
    return {"decay_rate": pin["decay_rate"], "expires_at": expires_at}


def _plan_memory(plan: MergePlan, values: dict[str, Any], own: OwnKnowledge, now: datetime) -> None:
    if values["type"] not in LEARNED_TYPES or values["status"] != MemoryStatus.ACTIVE:
        return
    if (values["type"], _hexadecimal(values["content_hash"])) in own.memories:
        _count_known(plan, "memories")
    elif _is_expired(values, now):
        plan.expired += 1
    else:
        plan.memories.append(values)


def _plan_belief(plan: MergePlan, values: dict[str, Any], own: OwnKnowledge) -> None:
    if values["status"] == BeliefStatus.DROPPED:
        return
    known = own.beliefs.get(_hexadecimal(values["statement_hash"]))
    if known is None:
        plan.beliefs.append(values)
    elif known[1] != values["status"]:
        plan.conflicts.append(
            MergeConflict(
                section="beliefs",
                subject=values["statement"],
                own=f"{known[1]}, confidence {known[0]:.2f}",
                other=f"{values['status']}, confidence {values['confidence']:.2f}",
            )
        )
    else:
        _count_known(plan, "beliefs")


def _plan_preference(plan: MergePlan, values: dict[str, Any], own: OwnKnowledge) -> None:
    known = own.preferences.get(values["key"])
    if known is None:
        plan.preferences.append(values)
    elif known != values["value"]:
        plan.conflicts.append(
            MergeConflict(section="preferences", subject=values["key"], own=known, other=values["value"])
        )
    else:
        _count_known(plan, "preferences")


def _count_known(plan: MergePlan, section: str) -> None:
    plan.known[section] = plan.known.get(section, 0) + 1


def _hexadecimal(stored: str) -> str:
    return stored.removeprefix("\\x")
