"""The SQL statement that searches passages, and its parts (decisions 0036 and 0042)."""

from __future__ import annotations

from arbor.memory.text.lexical import LEXICAL_DIMENSIONS

# Settings of the transaction with which HNSW continues until enough rows of the tenant are found.
ITERATIVE_SCAN = """
SELECT set_config('hnsw.iterative_scan', 'relaxed_order', true), set_config('hnsw.ef_search', '200', true)
"""

# Part: the rows that may be found. The condition on the tenant, beside row-level security, lets PostgreSQL use its index.
_SEARCHED = """p.tenant_id = %(tenant)s AND p.searchable
        AND ((SELECT categories FROM allowed) IS NULL OR p.category = ANY ((SELECT categories FROM allowed)::text[]))
        AND (%(category)s::text IS NULL OR p.category = %(category)s)"""

# Part: the distance to the query's vector, of passages with a vector of the same embedder.
_DISTANCE = "CASE WHEN p.embedding_model = %(model)s THEN p.embedding <=> %(vector)s::halfvec END"

# Score a tenant's searchable passages and return the nearest ones and those with the best words. One statement, so that other
# sources can be searched in the same round trip: the rarity of words is computed here as `lexical.query_vector` does.
# `word_distance` is pgvector's negative inner product: lower is better. PostgreSQL executes either `scanned` or `near` and
# `worded`, by the tenant's number of passages: their conditions on `size` are one-time filters. `OFFSET 0` prevents PostgreSQL
# from computing scores again at each use.
SEARCH_PASSAGES = f"""
WITH size AS MATERIALIZED (
    SELECT coalesce((SELECT passages FROM knowledge_passageterm WHERE tenant_id = %(tenant)s AND term = 0), 0) AS passages
), allowed AS MATERIALIZED (
    SELECT (SELECT ARRAY(SELECT jsonb_array_elements_text(k.categories)) FROM knowledge_agentknowledge k
        WHERE k.tenant_id = %(tenant)s AND k.agent_id = %(agent)s) AS categories
), counted AS MATERIALIZED (
    SELECT asked.term, t.passages > 0 AS known,
        ln(1 + (size.passages - least(coalesce(t.passages, 0), size.passages) + 0.5::float8)
            / (least(coalesce(t.passages, 0), size.passages) + 0.5::float8)) AS rarity
    FROM size, unnest(%(terms)s::int[]) AS asked (term)
    LEFT JOIN knowledge_passageterm t ON t.tenant_id = %(tenant)s AND t.term = asked.term
), words AS MATERIALIZED (
    SELECT ('{{{{' || string_agg(term || ':' || (rarity / most)::float4, ',' ORDER BY term) || '}}}}/{LEXICAL_DIMENSIONS}')::sparsevec AS vector
    FROM counted, (SELECT sum(rarity) * %(heaviest)s::float8 AS most FROM counted) total WHERE known
), scanned AS MATERIALIZED (
    SELECT p.id, {_DISTANCE} AS distance, p.lexical <#> (SELECT vector FROM words) AS word_distance
    FROM knowledge_passage p WHERE {_SEARCHED} AND (SELECT passages FROM size) <= %(exact)s OFFSET 0
), near AS MATERIALIZED (
    SELECT p.id, p.embedding::halfvec({{dimension}}) <=> %(vector)s::halfvec({{dimension}}) AS distance
    FROM knowledge_passage p
    WHERE {_SEARCHED} AND (SELECT passages FROM size) > %(exact)s
        AND vector_dims(p.embedding) = {{dimension}} AND p.embedding_model = %(model)s
    ORDER BY p.embedding::halfvec({{dimension}}) <=> %(vector)s::halfvec({{dimension}}) LIMIT %(limit)s
), worded AS MATERIALIZED (
    SELECT p.id, p.lexical <#> (SELECT vector FROM words) AS word_distance
    FROM knowledge_passage p
    WHERE {_SEARCHED} AND (SELECT passages FROM size) > %(exact)s AND (SELECT vector FROM words) IS NOT NULL OFFSET 0
), chosen AS (
    (SELECT id FROM scanned WHERE distance IS NOT NULL ORDER BY distance, id LIMIT %(limit)s)
    UNION SELECT id FROM near
    UNION (SELECT id FROM scanned WHERE word_distance < 0 ORDER BY word_distance, id LIMIT %(limit)s)
    UNION (SELECT id FROM worded WHERE word_distance < 0 ORDER BY word_distance, id LIMIT %(limit)s)
)
SELECT size.passages, (SELECT count(*) FROM near), p.*
FROM size LEFT JOIN LATERAL (
    SELECT p.id, p.document_id, d.name, d.title, v.number, p.category, p.headings, p.page, p.start, p."end", p.text, p.content_hash,
        p.written_at, 1 - ({_DISTANCE}) AS similarity, coalesce(-(p.lexical <#> (SELECT vector FROM words)), 0) AS words
    FROM chosen
    JOIN knowledge_passage p ON p.tenant_id = %(tenant)s AND p.id = chosen.id
    JOIN knowledge_document d ON d.tenant_id = %(tenant)s AND d.id = p.document_id
    JOIN knowledge_documentversion v ON v.tenant_id = %(tenant)s AND v.id = p.version_id
) p ON true
"""  # noqa: S608 (no external input)
