"""Rows of the mind's index: each one fits, however long its text, session or vector."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from django.db import connections

from apps.memories.services.embedding.embedding import embedder
from apps.memories.services.embedding.literals import MAX_DIMENSION, fit_terms, halfvec_texts, sparsevec_text
from arbor.errors import ConfigurationInvalid
from arbor.memory.text.lexical import MAX_TERMS, document_vector
from arbor.memory.values import SESSION_LENGTH

FULL = document_vector(" ".join(f"word{number}" for number in range(2 * MAX_TERMS)), speaker="Ada Byron")
LONGEST_SESSION = "🌲" * SESSION_LENGTH


def test_with_the_usual_dimension_nothing_is_left_out() -> None:
    assert len(FULL) == MAX_TERMS
    assert fit_terms(FULL, session=LONGEST_SESSION, dimension=256) == FULL


def test_an_index_row_leaves_out_the_lightest_terms() -> None:
    terms = fit_terms(
        {1: 0.5, 2: 2.0, 3: 1.0} | dict.fromkeys(range(4, 200), 0.1), session="", dimension=1024
    )
    assert {1, 2, 3} <= set(terms)
    assert len(terms) < 200


@pytest.mark.parametrize("dimension", [256, 384, 512, 768, MAX_DIMENSION])
@pytest.mark.parametrize("session", ["", "chat/1", LONGEST_SESSION])
def test_the_fullest_row_of_any_dimension_can_be_indexed(
    database: None, dimension: int, session: str
) -> None:
    terms = fit_terms(FULL, session=session, dimension=dimension)
    assert len(terms) >= 16
    vector = halfvec_texts(np.full((1, dimension), 0.01))[0]
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            f"CREATE TEMP TABLE rows (tenant_id uuid, agent_id uuid, id uuid, session varchar(100), occurred_at timestamptz,"
            f" expires_at timestamptz, embedding halfvec({dimension}), lexical sparsevec(1000000000))"
        )
        cursor.execute("ALTER TABLE rows ALTER embedding SET STORAGE PLAIN, ALTER lexical SET STORAGE PLAIN")
        cursor.execute(
            "CREATE INDEX ON rows (tenant_id, agent_id)"
            " INCLUDE (id, occurred_at, expires_at, embedding, lexical, session)"
        )
        for expires in ("now()", "NULL"):
            cursor.execute(
                "INSERT INTO rows SELECT gen_random_uuid(), gen_random_uuid(), gen_random_uuid(), %s, now(),"
                f" {expires}, %s, %s",
                [session, vector, sparsevec_text(terms)],
            )
        cursor.execute("DROP TABLE rows")


def test_longer_vectors_are_refused_with_the_limit(settings: Any) -> None:
    settings.ARBOR_EMBEDDING_DIMENSION = 1536
    with pytest.raises(ConfigurationInvalid, match="must be at most 1024, got 1536"):
        embedder()


def test_vectors_are_stored_in_the_row_without_compression(database: None) -> None:
    with connections["owner"].cursor() as cursor:
        cursor.execute(
            "SELECT attname::text, attstorage::text FROM pg_attribute"
            " WHERE attrelid = 'memories_memory'::regclass AND attname IN ('embedding', 'lexical')"
        )
        assert dict(cursor.fetchall()) == {"embedding": "p", "lexical": "p"}
