"""Export the rows of a list as CSV or JSON: filtered as the list is, in chunks, without secrets."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from datetime import date, datetime, timedelta
from decimal import Decimal
from enum import StrEnum
from typing import Any
from uuid import UUID

from django.conf import settings
from django.db.models import BinaryField, CharField, Field, JSONField, QuerySet, TextField
from django.http import Http404, StreamingHttpResponse
from django.http.response import HttpResponseBase
from pgvector.django import HalfVectorField, SparseVectorField, VectorField

from apps.tenants.fields import PackedJSON, StoredField
from apps.tenants.scope import tenant_transaction

#: Rows of one export at most, and rows read in one transaction.
ROWS_EXPORTED = 10_000
_CHUNK = 500
MASK = "***"
#: Texts whose column has one of these in its name are masked.
_SECRET = ("secret", "sealed", "password", "token", "digest", "hash", "session_key")
_UNREADABLE = (BinaryField, HalfVectorField, SparseVectorField, VectorField, StoredField)
_TEXTS = (CharField, TextField, JSONField, PackedJSON)
#: A spreadsheet would execute a text that begins with one of these.
_FORMULA = ("=", "+", "-", "@", "\t", "\r")


class ExportFormat(StrEnum):
    """The format of an export."""

    CSV = "csv"
    JSON = "json"

    @property
    def content_type(self) -> str:
        """Return the media type."""
        return "text/csv; charset=utf-8" if self is ExportFormat.CSV else "application/json"


@dataclass(frozen=True, kw_only=True)
class ExportColumn:
    """A column of an export: its name, and the value of a row."""

    name: str
    value: Callable[[Any], Any]


def export_columns(rows: QuerySet[Any], *, shown: Mapping[str, Callable[[Any], Any]]) -> list[ExportColumn]:
    """Return the columns of an export: the fields that the list reads, without vectors and secrets.

    `shown` has the value of fields that pages show in another form, such as addresses without their secret part.
    """
    names, deferred = rows.query.deferred_loading
    columns = []
    for field in rows.model._meta.concrete_fields:
        is_named = field.name in names or field.attname in names
        is_read = field.primary_key or is_named is not deferred
        if field.name == "tenant" or not is_read or isinstance(field, _UNREADABLE):
            continue
        if field.name in shown:
            columns.append(ExportColumn(name=field.name, value=shown[field.name]))
            continue
        columns.append(ExportColumn(name=field.attname, value=_reader(field)))
        joined = rows.query.select_related
        if field.name == "agent" and isinstance(joined, dict) and "agent" in joined:
            columns.append(ExportColumn(name="agent", value=_agent_name))
    return columns


def _agent_name(row: Any) -> str | None:
    """Return the name of a row's agent; None for a row of all agents."""
    return row.agent.name if row.agent_id else None


def _reader(field: Field[Any, Any]) -> Callable[[Any], Any]:
    if isinstance(field, _TEXTS) and any(part in field.name for part in _SECRET):
        return lambda row: MASK if getattr(row, field.attname) else ""
    return lambda row: getattr(row, field.attname)


type Line = list[Any]


def export_lines(
    rows: QuerySet[Any], columns: Sequence[ExportColumn], *, tenant_id: UUID | None
) -> Iterator[Line]:
    """Yield the values of rows in chunks, each read in a short transaction of its own; ROWS_EXPORTED rows at most."""
    for start in range(0, ROWS_EXPORTED, _CHUNK):
        scope: AbstractContextManager[Any] = nullcontext()
        if tenant_id is not None:
            scope = tenant_transaction(tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT)
        with scope:
            chunk = [[column.value(row) for column in columns] for row in rows[start : start + _CHUNK]]
        yield from chunk
        if len(chunk) < _CHUNK:
            return


def write_export(lines: Iterable[Line], columns: Sequence[ExportColumn], kind: ExportFormat) -> Iterator[str]:
    """Write lines as CSV below a line of names, or as a JSON array of objects."""
    return _write(lines, [column.name for column in columns], kind)


def _write(lines: Iterable[Line], names: Sequence[str], kind: ExportFormat) -> Iterator[str]:
    return _csv(lines, names) if kind is ExportFormat.CSV else _json(lines, names)


def answer_with_rows(rows: Sequence[Mapping[str, Any]], *, kind: str, name: str) -> HttpResponseBase:
    """Send rows that a page has read itself, as CSV or JSON; the columns are those of the first row.

    Raises Http404 for another format.
    """
    if kind not in ExportFormat:
        raise Http404(f"a list is exported as {' or '.join(ExportFormat)}")
    export = ExportFormat(kind)
    names = list(rows[0]) if rows else []
    lines = ([row[column] for column in names] for row in rows)
    answer = StreamingHttpResponse(_write(lines, names, export), content_type=export.content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}.{export}"'
    return answer


def _csv(lines: Iterable[Line], names: Sequence[str]) -> Iterator[str]:
    yield _row(names)
    for line in lines:
        yield _row([_cell(value) for value in line])


def _row(cells: Sequence[str]) -> str:
    buffer = io.StringIO()
    csv.writer(buffer).writerow(cells)
    return buffer.getvalue()


def _cell(value: Any) -> str:
    plain = _plain(value)
    if plain is None:
        return ""
    if isinstance(plain, str):
        return f"'{plain}" if plain.startswith(_FORMULA) and isinstance(value, str) else plain
    return json.dumps(plain, ensure_ascii=False)


def _json(lines: Iterable[Line], names: Sequence[str]) -> Iterator[str]:
    before = "[\n"
    for line in lines:
        value = dict(zip(names, map(_plain, line), strict=True))
        yield before + json.dumps(value, ensure_ascii=False)
        before = ",\n"
    yield "[]\n" if before == "[\n" else "\n]\n"


def _plain(value: Any) -> Any:
    """Return a value of a row as a value of JSON: moments in ISO 8601, durations in seconds, decimals as text."""
    match value:
        case None | bool() | int() | float():
            return value
        case str():
            return str(value)
        case datetime() | date():
            return value.isoformat()
        case timedelta():
            return value.total_seconds()
        case UUID() | Decimal():
            return str(value)
        case Mapping():
            return {str(key): _plain(part) for key, part in value.items()}
        case list() | tuple():
            return [_plain(part) for part in value]
        case _:
            return str(value)
