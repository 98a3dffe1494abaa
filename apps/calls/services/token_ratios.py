"""Learn the tokens that each model counts for an estimated one, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import F, QuerySet
from django.db.models.functions import JSONObject

from apps.calls.models import TokenRatio
from apps.tenants.scope import OPS
from arbor.models.windows import MAX_RATIO, MIN_RATIO

#: The latest calls of a tenant that are read, and the least number of calls and of estimated tokens of one model.
MAX_CALLS_READ = 200
MIN_CALLS = 3
MIN_TOKENS = 1_000

# An unusable reply counts too, since its input was counted as any other. An input that equals its estimate was estimated by the
# adapter. Rows are written where they differ, in the order of their keys.
_LEARN = """
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


def learn_token_ratios() -> int:
    """Learn the token ratios of all tenants from their latest calls; return the number of changed ones. One statement."""
    values = {
        "least": MIN_RATIO,
        "most": MAX_RATIO,
        "max_calls": MAX_CALLS_READ,
        "calls": MIN_CALLS,
        "tokens": MIN_TOKENS,
    }
    with connections[OPS].cursor() as cursor:
        cursor.execute(_LEARN, values)
        changed: int = cursor.rowcount
        return changed


def ratio_objects() -> QuerySet[TokenRatio, Any]:
    """Return the token ratios of the tenant as JSON objects, {model, ratio} each, for a sub-select."""
    return TokenRatio.objects.values(json=JSONObject(model=F("model"), ratio=F("ratio")))


def ratios_of(objects: list[dict[str, Any]]) -> Mapping[str, float]:
    """Return the token ratios by model."""
    return {entry["model"]: float(entry["ratio"]) for entry in objects}


@dataclass(frozen=True, kw_only=True)
class ModelTokenRatio:
    """The token ratio of a model over all tenants."""

    model: str
    ratio: float
    calls: int


def read_token_ratios() -> list[ModelTokenRatio]:
    """Return the token ratios of the installation by model, weighted by their calls."""
    with connections[OPS].cursor() as cursor:
        cursor.execute(
            "SELECT model, sum(ratio * calls) / sum(calls), sum(calls) FROM calls_tokenratio GROUP BY model ORDER BY model"
        )
        return [
            ModelTokenRatio(model=model, ratio=round(float(ratio), 3), calls=int(calls))
            for model, ratio, calls in cursor.fetchall()
        ]
