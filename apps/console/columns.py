"""Columns of lists: of any function of a row, and of one field in a frequent form."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.utils.html import format_html

from apps.console import cells
from apps.console.stored_json import pretty

type Column = Callable[[Any, Any], Any]

#: Characters shown of an error.
_ERROR_LENGTH = 70


def cell(title: str, show: Callable[[Any], Any]) -> Column:
    """Show the function's result for the row."""

    @admin.display(description=title)
    def shown(_admin: Any, row: Any) -> Any:
        return show(row)

    return shown


def as_text(value: dict[str, object]) -> str:
    """Write an object as lines of names and values."""
    return "\n".join(f"{name}: {part}" for name, part in value.items())


def badge(field: str, title: str) -> Column:
    """Show a status as a colored label."""
    return cell(title, lambda row: cells.badge(getattr(row, field)))


def error(field: str) -> Column:
    """Show the beginning of an error; a dash for none."""
    return cell("error", lambda row: cells.clipped(getattr(row, field) or "–", _ERROR_LENGTH))


def json(field: str, title: str) -> Column:
    """Show a value as indented JSON; the word "none" for an empty one."""
    return cell(title, lambda row: cells.block(pretty(value) if (value := getattr(row, field)) else ""))


def goal() -> Column:
    """Link the row's goal by its title."""
    return cell("goal", lambda row: cells.link("goals_goal", row.goal_id, row.goal.title))


def agent_or_all() -> Column:
    """Link the row's agent; "all agents" for a row without one."""
    return cell(
        "of",
        lambda row: (
            cells.link("agents_agent", row.agent_id, row.agent.name) if row.agent_id else "all agents"
        ),
    )


def memory(title: str = "memory", *, longest: int = 160) -> Column:
    """Link the row's memory by its beginning."""
    return cell(
        title,
        lambda row: cells.link("memories_memory", row.memory_id, cells.clipped(row.memory.content, longest)),
    )


def dollars(field: str, title: str, *, empty: str = "price unknown") -> Column:
    """Show an amount of US dollars."""
    return cell(title, lambda row: empty if (value := getattr(row, field)) is None else cells.dollars(value))


def number(field: str, title: str, *, empty: str = "–") -> Column:
    """Show a number with thousands separators."""
    return cell(title, lambda row: empty if (value := getattr(row, field)) is None else f"{value:,}")


def moment(field: str, title: str) -> Column:
    """Show a relative time."""
    return cell(title, lambda row: cells.when(getattr(row, field)))


def share(field: str, title: str) -> Column:
    """Show a number from 0 to 1 as a meter."""
    return cell(title, lambda row: cells.meter(round(getattr(row, field), 2), 1))


def beginning(field: str, title: str) -> Column:
    """Show the beginning of a text."""
    return cell(title, lambda row: cells.clipped(getattr(row, field)))


def words(field: str, title: str) -> Column:
    """Show a name of several words without its underscores; a dash for none."""
    return cell(title, lambda row: format_html("{}", str(getattr(row, field)).replace("_", " ") or "–"))


def origin(field: str, title: str) -> Column:
    """Show an origin, linked if it has a page."""
    return cell(title, lambda row: cells.origin(getattr(row, field)))


def heartbeat(field: str, title: str) -> Column:
    """Link the heartbeat whose id the field has; a dash for none."""
    return cell(
        title,
        lambda row: cells.origin(f"heartbeat:{getattr(row, field)}" if getattr(row, field) else ""),
    )


def lines(field: str, title: str) -> Column:
    """Show a list of texts, one on each line; the word "none" for an empty list."""
    return cell(title, lambda row: cells.listed(getattr(row, field)))
