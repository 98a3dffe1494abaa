"""Learn the tokens that each model counts for an estimated one, from the ledger."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from django.db import connections
from django.db.models import F, FloatField, QuerySet, Sum
from django.db.models.functions import JSONObject

from apps.calls.models import TokenRatio
from apps.calls.services import queries
from apps.tenants.scope import OPS
from arbor.models.windows import MAX_RATIO, MIN_RATIO

#: The latest calls of a tenant that are read, and the least number of calls and of estimated tokens of one model.
MAX_CALLS_READ = 200
MIN_CALLS = 3
MIN_TOKENS = 1_000


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
        cursor.execute(queries.LEARN_RATIOS, values)
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
    rows: QuerySet[TokenRatio] = QuerySet(TokenRatio, using=OPS)
    by_model = rows.values("model").annotate(
        counted=Sum(F("ratio") * F("calls")) / Sum("calls", output_field=FloatField()), of_calls=Sum("calls")
    )
    return [
        ModelTokenRatio(model=row["model"], ratio=round(row["counted"], 3), calls=row["of_calls"])
        for row in by_model.order_by("model")
    ]
