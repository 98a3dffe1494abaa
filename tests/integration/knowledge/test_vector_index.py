"""The HNSW index of passages: its dimension, its creation with the policies, its use under row-level security."""

from __future__ import annotations

from typing import Any

import numpy as np
import psycopg
from django.db import connection
from pgvector import HalfVector

from apps.tenants.models import Tenant
from apps.tenants.protection import protect
from apps.tenants.scope import tenant_transaction
from tests.factories.knowledge import DocumentVersionFactory, PassageFactory

_INDEXES = "SELECT indexname FROM pg_indexes WHERE indexname LIKE 'knowledge_passage_hnsw%'"
_NEAREST = """
EXPLAIN SELECT id FROM knowledge_passage
WHERE tenant_id = %s AND searchable AND vector_dims(embedding) = 256 AND embedding_model = 'wordllama 256'
ORDER BY embedding::halfvec(256) <=> %s::halfvec(256) LIMIT 5
"""


def test_the_index_has_the_dimension_of_the_settings(
    superuser: psycopg.Connection[Any], settings: Any
) -> None:
    assert superuser.execute(_INDEXES).fetchall() == [("knowledge_passage_hnsw_256",)]
    settings.ARBOR_EMBEDDING_DIMENSION = 128
    try:
        protect()
        assert ("knowledge_passage_hnsw_128",) in superuser.execute(_INDEXES).fetchall()
    finally:
        superuser.execute("DROP INDEX IF EXISTS knowledge_passage_hnsw_128")


def test_the_index_is_used_under_row_level_security(tenant: Tenant) -> None:
    vector = HalfVector(np.full(256, 1 / 16))
    with tenant_transaction(tenant.id):
        version = DocumentVersionFactory()
        PassageFactory(version=version, embedding=vector, embedding_model="wordllama 256")
        with connection.cursor() as cursor:
            # For one row the planner would sort.
            cursor.execute("SET LOCAL enable_sort = off")
            cursor.execute(_NEAREST, [tenant.id, vector.to_text()])
            plan = "\n".join(line for (line,) in cursor.fetchall())
    assert "knowledge_passage_hnsw_256" in plan
    assert "tenant_id = " in plan
