"""Conditions of rows without a vector, as querysets and as SQL: the text waits for its embedder, or the embedder refuses it.

`arbor.embedding.models.is_refused` is the same rule for a row that is already read.
"""

from __future__ import annotations

from django.db.models import Q

WAITS_FOR_VECTOR = Q(embedding__isnull=True, embedding_model="")
REFUSED_BY_EMBEDDER = Q(embedding__isnull=True) & ~Q(embedding_model="")

# The columns have no table name: the table of the row must be the only one of its FROM clause that has them.
WAITS_FOR_VECTOR_SQL = "embedding IS NULL AND embedding_model = ''"
REFUSED_BY_EMBEDDER_SQL = "embedding IS NULL AND embedding_model <> ''"
