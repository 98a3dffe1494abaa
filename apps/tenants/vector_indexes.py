"""HNSW indexes over vectors of the installation's dimension, which a migration cannot know."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from django.conf import settings
from django.db import models
from psycopg import sql

from apps.tenants.policies import StatementBatch


@dataclass(frozen=True, kw_only=True)
class VectorIndex:
    """An HNSW index over the vectors in a `halfvec` column that have the installation's dimension, for cosine distances.

    PostgreSQL uses the index for a query that orders by `COLUMN::halfvec(N) <=> …` and has the condition and `vector_dims(COLUMN) = N`.
    """

    name: str
    column: str
    #: The rows that are indexed, as SQL.
    condition: str


def create_vector_indexes(statements: StatementBatch, tenant_models: Iterable[type[models.Model]]) -> None:
    """Create the indexes that the models declare, for the dimension of the settings.

    Rows of another dimension are not in the index, so that an index for a new dimension is empty: the tables are not locked for long.
    """
    dimension = int(settings.ARBOR_EMBEDDING_DIMENSION)
    for model in tenant_models:
        for index in getattr(model, "vector_indexes", ()):
            name = f"{index.name}_{dimension}"
            if name in statements.catalog.indexes:
                continue
            statements.add(
                "CREATE INDEX IF NOT EXISTS {} ON {} USING hnsw (({}::halfvec({})) halfvec_cosine_ops)"
                " WHERE {} AND vector_dims({}) = {}",
                name,
                model._meta.db_table,
                index.column,
                sql.Literal(dimension),
                sql.SQL(index.condition),
                index.column,
                sql.Literal(dimension),
            )
