"""Check embedders, and record their failures and recoveries."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import connections

from apps.memories.models import EmbedderFault
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.embedding import call_embedder, embedder_for
from apps.memories.services.embedding.minds import installation_model
from apps.tenants.scope import APP, OPS
from arbor.embedding.backoff import FIRST_RETRY_DELAY, LONGEST_RETRY_DELAY
from arbor.embedding.models import EmbeddingModel
from arbor.errors import ArborError, ConfigurationInvalid, EmbeddingFailed

log = structlog.get_logger(__name__)

#: A text that any embedder can embed, and always embeds to the same vector.
KNOWN_TEXT = "Good morning."
#: The least cosine between two vectors of the same text, which differ by rounding only.
_SAME = 0.99


@dataclass(frozen=True, kw_only=True)
class EmbedderCheck:
    """The result of checking an embedder with a known text."""

    model: EmbeddingModel
    #: The embedder's own name; empty if the embedder cannot be called.
    made_by: str = ""
    latency_s: float = 0.0
    #: The reason why the embedder cannot be used; empty if it can.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class OtherModel:
    """An embedding model, other than the installation's, that agents have, and the number of these agents."""

    model: EmbeddingModel
    agents: int


def check_embedder(model: EmbeddingModel | None = None) -> EmbedderCheck:
    """Check an embedder, by default the installation's: embed a known text twice and compare the vectors. Nothing is stored.

    Raises ConfigurationInvalid if the settings name an impossible model.
    """
    model = model or installation_model()
    try:
        embedder = embedder_for(model)
        started = time.perf_counter()
        first, second = (call_embedder(embedder, [KNOWN_TEXT])[0] for _ in range(2))
        latency_s = (time.perf_counter() - started) / 2
    except ArborError as error:
        return EmbedderCheck(model=model, error=str(error))
    if first @ second < _SAME:
        return EmbedderCheck(
            model=model, made_by=embedder.model, error=f"{embedder.model} gave one text two different vectors"
        )
    return EmbedderCheck(model=model, made_by=embedder.model, latency_s=latency_s)


def report_unusable_embedder(*, process: str) -> None:
    """Log why this process cannot embed queries, for example without the provider's key; its recalls use words alone.

    Called once, at the start of a process that recalls. An embedder in the process needs no check.
    """
    try:
        if embedder_for(installation_model()).in_process:
            return
        error = check_embedder().error
    except ConfigurationInvalid as wrong:
        error = str(wrong)
    if error:
        log.warning("embedder_unusable", process=process, error=error)


def can_embed(model: EmbeddingModel) -> bool:
    """Return whether an embedder can embed the known text; if it can, the caller's call failed because of its texts."""
    try:
        call_embedder(embedder_for(model), [KNOWN_TEXT])
    except (EmbeddingFailed, ConfigurationInvalid):
        return False
    return True


def record_embedder_failure(model: EmbeddingModel, *, error: EmbeddingFailed) -> None:
    """Record that an embedder failed; the jobs that embed retry after a growing delay. One statement."""
    values: dict[str, Any] = {
        "model": name_of(model),
        "first": FIRST_RETRY_DELAY,
        "longest": LONGEST_RETRY_DELAY,
        # Only the class: a provider's message may contain a tenant's data, and this table is shared by all. The log has it.
        "error": type(error.__cause__ or error).__name__,
    }
    with connections[APP].cursor() as cursor:
        cursor.execute(queries.COUNT_FAILURE, values)
        failures, retry_at = cursor.fetchone()
    log.warning(
        "embedder_failed",
        model=str(model),
        failures=failures,
        retry_at=retry_at.isoformat(),
        error=str(error),
    )


def record_embedder_recovery(model: EmbeddingModel) -> None:
    """Record that an embedder recovered. One statement."""
    if EmbedderFault.objects.filter(embedding_model=name_of(model)).delete()[0]:
        log.info("embedder_recovered", model=str(model))


def embedder_faults() -> list[EmbedderFault]:
    """Return the faults of the embedders whose last call by a job failed, the oldest fault first."""
    return list(EmbedderFault.objects.using(OPS).order_by("since"))


def is_resting(fault: EmbedderFault, now: datetime) -> bool:
    """Return whether a failed embedder is not called yet, because its retry delay is not over."""
    return fault.retry_at > now


def other_models() -> list[OtherModel]:
    """Return the models other than the installation's that agents of any tenant have, the most frequent first.

    Raises ConfigurationInvalid for the installation's model.
    """
    own = installation_model()
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.OTHER_MODELS, [own.name, own.dimension])
        return [
            OtherModel(model=EmbeddingModel(name=name, dimension=dimension), agents=agents)
            for name, dimension, agents in cursor.fetchall()
        ]


def name_of(model: EmbeddingModel) -> str:
    """Return the name of a model with its dimension, as stored in rows."""
    return f"{model.name} {model.dimension}"
