"""Handwritten statements about model calls, each with its reason."""

from __future__ import annotations

# One statement for all tenants, because each takes its own latest calls: by the ORM, a read and a write for each tenant.
# An unusable reply counts too, since its input was counted as any other. An input that equals its estimate was estimated by the
# adapter. Rows are written where they differ, in the order of their keys.
LEARN_RATIOS = """
INSERT INTO calls_tokenratio (tenant_id, id, model, ratio, calls, learnt_at)
SELECT t.id, gen_random_uuid(), learnt.model, learnt.ratio, learnt.calls, now()
FROM tenants_tenant t CROSS JOIN LATERAL (
    SELECT c.model, least(greatest(sum(e.input_tokens)::float8 / sum(e.estimated_tokens), %(least)s), %(most)s) AS ratio,
        count(*) AS calls
    FROM (
        SELECT call_id, input_tokens, estimated_tokens FROM calls_ledgerentry
        WHERE tenant_id = t.id AND at > now() - interval '1 day'
        ORDER BY at DESC LIMIT %(max_calls)s
    ) e JOIN calls_externalcall c ON c.tenant_id = t.id AND c.id = e.call_id
    WHERE e.input_tokens > 0 AND e.estimated_tokens > 0 AND e.input_tokens <> e.estimated_tokens
    GROUP BY c.model
    HAVING count(*) >= %(calls)s AND sum(e.estimated_tokens) >= %(tokens)s
) learnt
ORDER BY t.id, learnt.model
ON CONFLICT (tenant_id, model) DO UPDATE
SET ratio = excluded.ratio, calls = excluded.calls, learnt_at = excluded.learnt_at
WHERE abs(calls_tokenratio.ratio - excluded.ratio) > 0.005 OR calls_tokenratio.calls <> excluded.calls
"""
