"""SQL statements about documents, their passages and skills that no queryset can express."""

from __future__ import annotations

from apps.memories.services.embedding.missing_vectors import WAITS_FOR_VECTOR_SQL

# One transaction at a time changes a tenant's passages and the counts of their terms; two could deadlock on the counts.
LOCK_PASSAGES = "SELECT pg_advisory_xact_lock(hashtextextended('knowledge_passages', 0) # hashtextextended(%(tenant)s::text, 0))"

# Global skills and default models, by which the room for agents' skills is checked, change in one transaction at a time, and in none that
# overlaps a transaction that chooses skills or models of agents: those share the lock.
LOCK_SKILL_SIZES = "SELECT pg_advisory_xact_lock(hashtext('arbor.skills'))"
LOCK_SKILL_SIZES_SHARED = "SELECT pg_advisory_xact_lock_shared(hashtext('arbor.skills'))"

# Add changes, which may be negative, to the counts of terms, in the order of the terms.
COUNT_TERMS = """
INSERT INTO knowledge_passageterm AS counted (tenant_id, term, passages)
SELECT %(tenant)s, new.term, new.change
FROM unnest(%(terms)s::int[], %(changes)s::int[]) AS new (term, change) ORDER BY new.term
ON CONFLICT (tenant_id, term) DO UPDATE SET passages = counted.passages + excluded.passages
"""
DROP_UNUSED_TERMS = """
DELETE FROM knowledge_passageterm
WHERE tenant_id = %(tenant)s AND term = ANY(%(terms)s::int[]) AND passages <= 0
"""

# Documents that wait for a worker, some of each active tenant: those that are pending, that lost their worker, or that have
# vectors of another embedder. The operations role reads all tenants.
DUE_DOCUMENTS = """
SELECT t.id, due.id FROM tenants_tenant t CROSS JOIN LATERAL (
    (SELECT id, created_at FROM knowledge_document
     WHERE tenant_id = t.id AND indexing IN ('pending', 'indexing')
        AND (indexing = 'pending' OR lease_until <= now()) AND (retry_at IS NULL OR retry_at <= now())
     ORDER BY created_at LIMIT %(per_tenant)s)
    UNION ALL
    (SELECT id, created_at FROM knowledge_document
     WHERE tenant_id = t.id AND indexing = 'indexed' AND embedding_model <> %(model)s AND NOT %(rests)s
     ORDER BY embedding_model LIMIT %(per_tenant)s)
) due
WHERE t.status = 'active' ORDER BY row_number() OVER (PARTITION BY t.id ORDER BY due.created_at), random() LIMIT %(most)s
"""

# Tenants with passages that wait for their vectors by the installation's embedder.
TENANTS_WITHOUT_VECTORS = f"""
SELECT t.id FROM tenants_tenant t
WHERE t.status = 'active' AND EXISTS (
    SELECT FROM knowledge_passage WHERE tenant_id = t.id AND {WAITS_FOR_VECTOR_SQL}
) ORDER BY random()
"""  # noqa: S608 (no external input)

# Documents of all active tenants with a fault, by kind: their number, and the first of them. Progress of a document renews its
# lease or `updated_at`.
DOCUMENT_FAULTS = """
SELECT kind, count(*), (array_agg(name ORDER BY name))[1:%(named)s] FROM (
    SELECT t.slug || '/' || d.name AS name, CASE
        WHEN d.indexing = 'failed' THEN 'failed'
        WHEN d.indexing = 'pending' AND greatest(d.updated_at, d.retry_at) < now() - %(late)s
            OR d.indexing = 'indexing' AND d.lease_until < now() - %(late)s THEN 'stuck'
        WHEN d.indexing = 'indexed' AND d.embedded + d.refused < d.passages AND d.updated_at < now() - %(late)s
            THEN 'without_vectors'
    END AS kind
    FROM tenants_tenant t JOIN knowledge_document d ON d.tenant_id = t.id WHERE t.status = 'active'
) found WHERE kind IS NOT NULL GROUP BY kind
"""
