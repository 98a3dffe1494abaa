"""Checks of the rows of seeds beyond the types of their columns: what heartbeats, recalls, decisions and pages read from JSON."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pydantic import ValidationError

from arbor.errors import SeedInvalid
from arbor.heartbeat.working_memory import WorkingMemory
from arbor.ids import read_id
from arbor.selves.history import BIRTH_CHANGE, PartKind
from arbor.selves.proposals import ProposalKind, ProposalStatus
from arbor.selves.values import AspectKind, BeliefCategory

type Values = dict[str, Any]


def check_state(values: Values) -> None:
    """Check that heartbeats can read the working memory: they cannot begin without one."""
    try:
        WorkingMemory.model_validate(values["working_memory"])
    except ValidationError as error:
        raise SeedInvalid("state of the seed has a working_memory that this Arbor cannot read") from error


def check_neighbors(values: Values) -> None:
    """Check that recalls can read a neighborhood: the weights of memories by their ids."""
    neighbors = values["neighbors"]
    if neighbors is None:
        return
    if not isinstance(neighbors, dict) or not all(
        str(read_id(other)) == other and type(weight) in (int, float) for other, weight in neighbors.items()
    ):
        raise SeedInvalid("upkeep of the seed has neighbors that are no weights of memories by their ids")


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
