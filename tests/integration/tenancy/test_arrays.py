"""Lists of bytes and numbers as values of statements."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import numpy as np
import pytest
from django.db import connection
from psycopg import ClientCursor

from apps.memories.services.embedding.literals import halfvec_texts
from apps.tenants.postgresql.arrays import Blobs, Reals
from apps.tenants.statements import fetch

SELECT_ITEMS = "SELECT n, item FROM unnest(%(items)s::bytea[]) WITH ORDINALITY AS given (item, n) ORDER BY n"
ITEMS: list[list[bytes | None]] = [[b"one", b"\x00'\"\\,{}\xff", b""], [None, b"two", None], [b"x" * 100_000]]


@pytest.mark.parametrize("items", [*ITEMS, []])
@pytest.mark.django_db
def test_bytes_as_parameters_are_unchanged(items: list[bytes | None]) -> None:
    with connection.cursor() as cursor:
        cursor.execute(SELECT_ITEMS, {"items": Blobs(items)})  # type: ignore[dict-item]  # the backend registers its dumper
        assert [item for _, item in cursor.fetchall()] == items


@pytest.mark.parametrize("items", ITEMS)
@pytest.mark.django_db
def test_bytes_inside_the_text_of_a_statement_are_unchanged(items: list[bytes | None]) -> None:
    connection.ensure_connection()
    raw = connection.connection
    assert raw is not None
    with ClientCursor(raw) as cursor:
        cursor.execute(SELECT_ITEMS, {"items": Blobs(items)})
        assert [item for _, item in cursor.fetchall()] == items


@pytest.mark.parametrize("items", ITEMS)
def test_a_list_of_bytes_is_a_value_of_a_fixed_statement(in_tenant: UUID, items: list[bytes | None]) -> None:
    assert [item for _, item in fetch(SELECT_ITEMS, items=items)] == items


ROWS = np.random.default_rng(7).normal(size=(3, 5)).astype(np.float32)
SELECT_REALS = "SELECT %(rows)s::real[], ((%(rows)s::real[])[6:10])::halfvec::text"


def real_rows(rows: Any) -> dict[str, Any]:
    return {"rows": Reals(rows)}


@pytest.mark.parametrize(
    "rows", [ROWS, ROWS[:1], np.empty((0, 5), np.float32), np.array([1e-30, 3e38, -0.0], np.float32)]
)
@pytest.mark.django_db
def test_numbers_as_parameters_are_unchanged(rows: np.ndarray) -> None:
    with connection.cursor() as cursor:
        cursor.execute("SELECT %(rows)s::real[]", real_rows(rows))
        ((received,),) = cursor.fetchall()
    assert np.array_equal(np.array(received, np.float32), rows.ravel())


@pytest.mark.django_db
def test_numbers_inside_the_text_of_a_statement_are_unchanged() -> None:
    connection.ensure_connection()
    raw = connection.connection
    assert raw is not None
    with ClientCursor(raw) as cursor:
        cursor.execute(SELECT_REALS, {"rows": Reals(ROWS)})
        row = cursor.fetchone()
    assert row is not None
    assert np.array_equal(np.array(row[0], np.float32), ROWS.ravel())


@pytest.mark.django_db
def test_a_slice_of_numbers_equals_the_vector_of_its_text() -> None:
    with connection.cursor() as cursor:
        cursor.execute(SELECT_REALS, real_rows(ROWS))
        ((_, vector),) = cursor.fetchall()
        cursor.execute("SELECT %s::halfvec::text", halfvec_texts(ROWS[1:2]))
        assert cursor.fetchone() == (vector,)
