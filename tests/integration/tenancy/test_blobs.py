"""Many texts of bytes as one value of a statement arrive as they were, however the statement is sent."""

from __future__ import annotations

from uuid import UUID

import pytest
from django.db import connection
from psycopg import ClientCursor

from apps.tenants.postgresql.arrays import Blobs
from apps.tenants.statements import fetch

_SENT = "SELECT n, item FROM unnest(%(items)s::bytea[]) WITH ORDINALITY AS sent (item, n) ORDER BY n"
ITEMS: list[list[bytes | None]] = [[b"one", b"\x00'\"\\,{}\xff", b""], [None, b"two", None], [b"x" * 100_000]]


@pytest.mark.parametrize("items", [*ITEMS, []])
@pytest.mark.django_db
def test_bytes_arrive_as_they_were(items: list[bytes | None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_SENT, {"items": Blobs(items)})
        assert [item for _, item in cursor.fetchall()] == items


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.django_db
def test_bytes_within_the_text_of_a_statement_arrive_as_well(items: list[bytes | None]) -> None:
    connection.ensure_connection()
    raw = connection.connection
    assert raw is not None
    with ClientCursor(raw) as cursor:
        cursor.execute(_SENT, {"items": Blobs(items)})
        assert [item for _, item in cursor.fetchall()] == items


@pytest.mark.parametrize("items", ITEMS)
def test_a_list_of_bytes_is_a_value_of_a_fixed_statement(in_tenant: UUID, items: list[bytes | None]) -> None:
    assert [item for _, item in fetch(_SENT, items=items)] == items
