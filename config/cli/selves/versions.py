"""Show the self-knowledge of an agent, its growth log and its versions, and roll its self back."""

from __future__ import annotations

from typing import Any

from rich.console import Group
from rich.markup import escape

from apps.selves.services.history import (
    SelfVersion,
    diff_versions,
    growth_log,
    latest_version,
    versions_of,
)
from apps.selves.services.rollback import ALL_PARTS, roll_back
from apps.selves.services.self_knowledge import load_self_knowledge
from arbor.selves.history import BIRTH_CHANGE, PartDifference, PartKind
from arbor.selves.self_knowledge import Quality
from config.cli.kit.columns import OutputColumn, listing, number, row_to_dict, table_of
from config.cli.kit.declarations import Output
from config.cli.kit.output import cut, format_relative_time
from config.cli.kit.tenancy import ChosenAgent, actor, in_agent_transaction

QUALITY_COLUMNS = (
    OutputColumn("kind", "kind"),
    OutputColumn("strength", "strength", cell=number),
    OutputColumn("questioned", "", cell=lambda questioned: "in doubt" if questioned else ""),
    OutputColumn("name", "name", cell=cut),
)
CHANGE_COLUMNS = (
    OutputColumn("version", "version"),
    OutputColumn("at", "when", cell=format_relative_time),
    OutputColumn("what", "what"),
    OutputColumn(
        "", "change", value=lambda change: _summary(change.what, change.before, change.after), cell=cut
    ),
    OutputColumn("decided_by", "by", cell=lambda by: by.split(":")[0]),
    OutputColumn("reason", "reason", cell=cut),
    *(OutputColumn(key) for key in ("id", "target_id", "before", "after", "proposal_id")),
)
DIFFERENCE_COLUMNS = (
    OutputColumn("difference", "difference"),
    OutputColumn("kind", "kind"),
    OutputColumn("name", "name", cell=cut),
    OutputColumn("", "change", value=lambda part: _fields(part), cell=cut),
    *(OutputColumn(key) for key in ("part", "target_id", "before", "after")),
)
VERSION_COLUMNS = (
    OutputColumn("number", "version"),
    OutputColumn("at", "since", cell=format_relative_time),
    OutputColumn("decided_by", "by"),
    OutputColumn("", "changes", value=lambda version: _changes(version), cell=cut),
    OutputColumn("reason", "reason", cell=cut),
)


@in_agent_transaction
def show(agent: ChosenAgent) -> Output:
    """Show an agent's traits, values and capabilities."""
    knowledge = load_self_knowledge(agent.id)
    rows = [
        *_rows("trait", knowledge.traits),
        *_rows("value", knowledge.values),
        *_rows("capability", knowledge.capabilities),
    ]
    return listing(
        "self_knowledge",
        rows,
        QUALITY_COLUMNS,
        about={"agent": agent.name, "version": latest_version(agent.id)},
        empty=f"{escape(agent.name)} knows no trait, value or capability of itself yet.",
    )


@in_agent_transaction
def list_growth(agent: ChosenAgent, *, last: int) -> Output:
    """List the latest changes of an agent's self, the latest first."""
    return listing(
        "changes",
        growth_log(agent.id, limit=last),
        CHANGE_COLUMNS,
        about={"agent": agent.name},
        empty=f"The self of {escape(agent.name)} has not changed yet.",
    )


@in_agent_transaction
def list_versions(agent: ChosenAgent) -> Output:
    """List the versions of an agent's self that can be compared and restored."""
    return listing(
        "versions",
        versions_of(agent.id),
        VERSION_COLUMNS,
        about={"agent": agent.name},
        empty=f"The self of {escape(agent.name)} has not changed yet.",
    )


@in_agent_transaction
def diff(agent: ChosenAgent, *, earlier: int, later: int | None) -> Output:
    """Compare two versions of an agent's self."""
    found = diff_versions(agent_id=agent.id, earlier=earlier, later=later)
    return listing(
        "differences",
        found.differences,
        DIFFERENCE_COLUMNS,
        about={"agent": agent.name, "earlier": found.earlier, "later": found.later},
        empty=f"Versions {found.earlier} and {found.later} are equal.",
    )


@in_agent_transaction
def restore(agent: ChosenAgent, *, version: int, parts: tuple[str, ...], reason: str) -> Output:
    """Roll the self of an agent back to a version."""
    chosen = [PartKind(part) for part in parts] or ALL_PARTS
    result = roll_back(agent_id=agent.id, to=version, parts=chosen, actor=actor(), reason=reason)
    value = {
        "agent": agent.name,
        "to": result.to,
        "version": result.version,
        "differences": [row_to_dict(part, DIFFERENCE_COLUMNS) for part in result.differences],
    }
    name = escape(agent.name)
    if not result.differences:
        return Output(value, text=f"The self of {name} is as it was at version {result.to}. Nothing changed.")
    text = f"The self of [bold]{name}[/bold] is again as at version {result.to}; this is version {result.version}."
    return Output(value, text=Group(table_of(result.differences, DIFFERENCE_COLUMNS), text))


def _rows(kind: str, qualities: tuple[Quality, ...]) -> list[dict[str, Any]]:
    return [
        {"kind": kind, "name": quality.name, "strength": quality.strength, "questioned": quality.questioned}
        for quality in qualities
    ]


def _changes(version: SelfVersion) -> str:
    if version.is_birth:
        return "birth"
    return ", ".join(f"{part.act} {part.kind} {part.name}" for part in version.changes)


def _summary(what: str, before: dict[str, Any], after: dict[str, Any]) -> str:
    if what == BIRTH_CHANGE:
        return ", ".join(f"{len(rows)} of the kind {part}" for part, rows in after.items())
    part = PartDifference(part=PartKind(what), target_id="", before=before, after=after)
    return f"{part.act} {part.kind} {part.name} {_fields(part)}".rstrip()


def _fields(part: PartDifference) -> str:
    if not part.before or not part.after:
        return ""
    return ", ".join(f"{name} {before} → {after}" for name, (before, after) in part.fields.items())
