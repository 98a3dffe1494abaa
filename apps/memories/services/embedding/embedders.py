"""The state of the embedders: check one, and record its failures and recoveries."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import structlog
from django.db import connections

from apps.memories.models import EmbedderFault
from apps.memories.services.embedding import queries
from apps.memories.services.embedding.embedding import ask, embedder_for
from apps.memories.services.embedding.minds import installation_model
from apps.tenants.scope import APP, OPS
from arbor.embedding.backoff import FIRST_RETRY_DELAY, LONGEST_RETRY_DELAY
from arbor.embedding.models import EmbeddingModel
from arbor.errors import ArborError, ConfigurationInvalid, EmbeddingFailed

log = structlog.get_logger(__name__)

#: Any embedder can read it, and its vector is always the same.
KNOWN_TEXT = "Good morning."
#: An embedder gives the same text the same vector, but for rounding.
_SAME = 0.99


@dataclass(frozen=True, kw_only=True)
class EmbedderCheck:
    """The result of asking an embedder for the vector of a known text."""

    model: EmbeddingModel
    #: What the embedder calls itself; empty when it cannot even be connected.
    made_by: str = ""
    latency_s: float = 0.0
    #: Why there was no vector that can be used; empty: there was.
    error: str = ""


@dataclass(frozen=True, kw_only=True)
class OtherModel:
    """An embedding model, other than the installation's, that agents still have."""

    model: EmbeddingModel
    agents: int


def check_embedder(model: EmbeddingModel | None = None) -> EmbedderCheck:
    """Ask an embedder, the installation's if none is named, for a known text's vector, twice; nothing is kept.

    Raises ConfigurationInvalid only when the settings name no possible model.
    """
    model = model or installation_model()
    try:
        made = embedder_for(model)
        started = time.perf_counter()
        first, again = ask(made, [KNOWN_TEXT])[0], ask(made, [KNOWN_TEXT])[0]
        latency_s = (time.perf_counter() - started) / 2
    except ArborError as error:
        return EmbedderCheck(model=model, error=str(error))
    if first @ again < _SAME:
        return EmbedderCheck(
            model=model, made_by=made.model, error=f"{made.model} gave one text two different vectors"
        )
    return EmbedderCheck(model=model, made_by=made.model, latency_s=latency_s)


def answers(model: EmbeddingModel) -> bool:
    """Return whether an embedder answers at all: if it can read a known text, the text it refused is at fault."""
    try:
        ask(embedder_for(model), [KNOWN_TEXT])
    except (EmbeddingFailed, ConfigurationInvalid):
        return False
    return True


def note_failure(model: EmbeddingModel, error: EmbeddingFailed) -> None:
    """Record that an embedder failed: the backlog does not ask it for a growing while. One statement."""
    values: dict[str, Any] = {
        "model": name_of(model),
        "first": FIRST_RETRY_DELAY,
        "longest": LONGEST_RETRY_DELAY,
        # What a provider says may name somebody's data, and this table is nobody's own. The log has it.
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


def note_answer(model: EmbeddingModel) -> None:
    """Record that an embedder recovered. One statement."""
    if EmbedderFault.objects.filter(embedding_model=name_of(model)).delete()[0]:
        log.info("embedder_recovered", model=str(model))


def embedder_faults() -> list[EmbedderFault]:
    """Return the embedders that failed when the backlog last asked them, those that have failed longest first."""
    return list(EmbedderFault.objects.using(OPS).order_by("since"))


def is_resting(fault: EmbedderFault, now: datetime) -> bool:
    """Return whether an embedder is not to be asked at that time."""
    return fault.retry_at > now


def other_models() -> list[OtherModel]:
    """Return the models, other than the installation's, that agents of any tenant still have; the commonest first.

    Names of models and numbers of agents only. Raises ConfigurationInvalid.
    """
    own = installation_model()
    with connections[OPS].cursor() as cursor:
        cursor.execute(queries.OTHER_MODELS, [own.name, own.dimension])
        return [
            OtherModel(model=EmbeddingModel(name=name, dimension=dimension), agents=agents)
            for name, dimension, agents in cursor.fetchall()
        ]


def name_of(model: EmbeddingModel) -> str:
    """Return how rows name a model together with its dimension."""
    return f"{model.name} {model.dimension}"
