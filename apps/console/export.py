"""Export the rows of a list as CSV or JSON: filtered as the list is, in chunks, with secrets masked."""

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

#: The most rows of an export, and the rows read in one transaction.
ROWS_EXPORTED = 10_000
_CHUNK = 500
MASK = "***"
#: Texts are masked if the name of their column has one of these parts.
_SECRET_NAMES = ("secret", "sealed", "password", "token", "digest", "hash", "session_key")
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
    """Return the columns of an export: the fields that the list reads, without the tenant, bytes, vectors and generated
    columns; secrets are masked.

    `shown` gives the values of fields that pages show in another form, such as addresses without their secret part.
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
    if isinstance(field, _TEXTS) and any(part in field.name for part in _SECRET_NAMES):
        return lambda row: MASK if getattr(row, field.attname) else ""
    return lambda row: getattr(row, field.attname)


type Line = list[Any]


def export_lines(
    rows: QuerySet[Any], columns: Sequence[ExportColumn], *, tenant_id: UUID | None
) -> Iterator[Line]:
    """Yield the values of at most ROWS_EXPORTED rows, read in chunks with a short transaction for each chunk.

    The rows are chosen at the beginning: those that are added meanwhile would move the others into the next chunk.
    """

    def scope() -> AbstractContextManager[Any]:
        if tenant_id is None:
            return nullcontext()
        return tenant_transaction(tenant_id, statement_timeout=settings.ARBOR_PAGE_TIMEOUT)

    with scope():
        keys = list(rows.values_list("pk", flat=True)[:ROWS_EXPORTED])
    for start in range(0, len(keys), _CHUNK):
        with scope():
            chosen = rows.filter(pk__in=keys[start : start + _CHUNK])
            chunk = [[column.value(row) for column in columns] for row in chosen]
        yield from chunk


def read_format(kind: str) -> ExportFormat:
    """Return the format of this name. Raises Http404 for another name."""
    if kind not in ExportFormat:
        raise Http404(f"a list is exported as {' or '.join(ExportFormat)}")
    return ExportFormat(kind)


def answer_with_lines(
    lines: Iterable[Line], columns: Sequence[str], *, kind: ExportFormat, name: str
) -> HttpResponseBase:
    """Send lines as a file: CSV below a line of column names, or a JSON array of objects."""
    parts = _csv(lines, columns) if kind is ExportFormat.CSV else _json(lines, columns)
    answer = StreamingHttpResponse(parts, content_type=kind.content_type)
    answer["Content-Disposition"] = f'attachment; filename="{name}.{kind}"'
    return answer


def answer_with_rows(rows: Sequence[Mapping[str, Any]], *, kind: str, name: str) -> HttpResponseBase:
    """Send rows that a page has read, as a file; the columns are those of the first row. Raises Http404 for another format."""
    columns = list(rows[0]) if rows else []
    lines = ([row[column] for column in columns] for row in rows)
    return answer_with_lines(lines, columns, kind=read_format(kind), name=name)


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
    """Return a value of a row as a JSON value: times in ISO 8601, durations in seconds, decimals as text."""
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
