"""Checks of the rows of seeds beyond the types of their columns: what heartbeats, recalls, decisions and pages read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from arbor.errors import Invalid, SeedInvalid
from arbor.heartbeat.situation import Notice
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.ids import read_id
from arbor.selves.history import BIRTH_CHANGE, PartKind
from arbor.selves.memory_filters import read_filters
from arbor.selves.proposals import ProposalKind, ProposalStatus
from arbor.selves.values import AspectKind, BeliefCategory

type Values = dict[str, Any]


def check_state(values: Values) -> None:
    """Check that heartbeats can read the working memory, the notices and what was learned; with a wrong value each heartbeat would fail."""
    try:
        WorkingMemory.model_validate(values["working_memory"])
    except ValidationError as error:
        raise SeedInvalid("state of the seed has a working_memory that this Arbor cannot read") from error
    try:
        for notice in values["notices"]:
            Notice.model_validate(notice)
    except ValidationError as error:
        raise SeedInvalid("state of the seed has notices that this Arbor cannot read") from error
    if not all(_are_counts(counts) for counts in values["learned"].values()):
        raise SeedInvalid(
            "state of the seed has learned values that are no attempts and successes of actions"
        )


def _are_counts(value: Any) -> bool:
    return isinstance(value, list) and len(value) == 2 and all(type(count) is int for count in value)


def check_neighbors(values: Values) -> None:
    """Check that recalls can read a neighborhood: the weights of memories by their ids."""
    neighbors = values["neighbors"]
    if neighbors is None:
        return
    if not isinstance(neighbors, dict) or not all(
        _is_id(other) and type(weight) in (int, float) for other, weight in neighbors.items()
    ):
        raise SeedInvalid("upkeep of the seed has neighbors that are no weights of memories by their ids")


def _is_id(text: str) -> bool:
    id_ = read_id(text)
    return id_ is not None and str(id_) == text


def check_belief(values: Values) -> None:
    """Check that recalls can read the memory filters."""
    try:
        read_filters(values["filters"])
    except Invalid as error:
        raise SeedInvalid(f"beliefs of the seed have filters that this Arbor cannot read: {error}") from error


def check_boundary(values: Values) -> None:
    """Check that texts can be compared with the vectors of the examples."""
    dimension, rows = (values["vectors"].get(name) for name in ("dimension", "rows"))
    if values["vectors"] and not (isinstance(rows, list) and all(_is_vector(row, dimension) for row in rows)):
        raise SeedInvalid(
            "boundaries of the seed have vectors that are no lists of numbers of their dimension"
        )


def _is_vector(row: Any, dimension: Any) -> bool:
    return (
        isinstance(row, list)
        and len(row) == dimension
        and all(type(number) in (int, float) for number in row)
    )


def check_proposal(values: Values) -> None:
    """Check that a pending proposal can be compared with new ones, and accepted."""
    if values["status"] == ProposalStatus.PENDING and not _is_applicable(values["kind"], values["change"]):
        raise SeedInvalid("proposals of the seed have a change that this Arbor cannot apply")


def _is_applicable(kind: str, change: Mapping[str, Any]) -> bool:
    if kind == ProposalKind.IDENTITY:
        aspect = change.get("aspect", AspectKind.SELF_CONCEPT)
        return aspect in list(AspectKind) and _is_share(change.get("strength", 1))
    if kind == ProposalKind.BELIEF and "belief" in change:
        return read_id(str(change["belief"])) is not None and _is_share(change.get("confidence"))
    if kind == ProposalKind.BELIEF:
        return change.get("category", BeliefCategory.WORLD) in list(BeliefCategory)
    return True


def _is_share(value: Any) -> bool:
    return type(value) in (int, float) and 0 <= value <= 1


def check_self_change(values: Values) -> None:
    """Check that the versions of a self can be read from a change, and from a birth the parts by their ids."""
    what, after = values["what"], values["after"]
    if what not in [BIRTH_CHANGE, *PartKind]:
        raise SeedInvalid(f"self_history of the seed has what {what[:60]!r}, which this Arbor does not know")
    if what == BIRTH_CHANGE and not all(_is_part(after.get(part.value, {})) for part in PartKind):
        raise SeedInvalid("self_history of the seed has a birth whose after has no parts by their ids")


def _is_part(rows: Any) -> bool:
    return isinstance(rows, dict) and all(isinstance(values, dict) for values in rows.values())
