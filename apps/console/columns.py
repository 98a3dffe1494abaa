"""Columns that many lists have: a moment, a share, the beginning of a text. Each shows one field of its row."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from django.contrib import admin
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


def _column(title: str, cell: Callable[[Any], SafeString]) -> Column:
    @admin.display(description=title)
    def shown(_admin: Any, row: Any) -> SafeString:
        return cell(row)

    return shown
