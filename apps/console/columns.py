"""Columns that many lists have: a moment, a share, the beginning of a text. Each shows one field of its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
from django.utils.html import format_html
from django.utils.safestring import SafeString

from apps.console import cells

type Column = Callable[[Any, Any], SafeString]


def moment(field: str, title: str) -> Column:
    """Show when it was, in words."""
    return _column(title, lambda row: cells.when(getattr(row, field)))


def share(field: str, title: str) -> Column:
    """Show a number from 0 to 1 as a meter."""
    return _column(title, lambda row: cells.meter(round(getattr(row, field), 2), 1))


def beginning(field: str, title: str) -> Column:
    """Show how a text begins."""
    return _column(title, lambda row: cells.clipped(getattr(row, field)))


def words(field: str, title: str) -> Column:
    """Show a name of several words without its underscores; a dash for none."""
    return _column(title, lambda row: format_html("{}", str(getattr(row, field)).replace("_", " ") or "–"))


def origin(field: str, title: str) -> Column:
    """Show where something comes from, with a link where it has a page."""
    return _column(title, lambda row: cells.origin(getattr(row, field)))


def heartbeat(field: str, title: str) -> Column:
    """Link the heartbeat whose id the field has; a dash for none."""
    return _column(
        title,
        lambda row: cells.origin(f"heartbeat:{getattr(row, field)}" if getattr(row, field) else ""),
    )


def lines(field: str, title: str) -> Column:
    """Show a list of texts, one on each line; say so when there is none."""
    return _column(title, lambda row: cells.listed(getattr(row, field)))


def _column(title: str, cell: Callable[[Any], SafeString]) -> Column:
    @admin.display(description=title)
    def shown(_admin: Any, row: Any) -> SafeString:
        return cell(row)

    return shown
