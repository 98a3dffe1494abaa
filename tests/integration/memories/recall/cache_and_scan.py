"""Compare recall from a cached mind with recall by the scan, which is the reference."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import pytest
from django.test import override_settings

from apps.agents.models import Agent
from apps.memories.services.embedding.embedding import embed_texts
from apps.memories.services.embedding.minds import model_of
from apps.memories.services.recall import mind_cache, recaller
from apps.memories.services.recall.mind_cache import MINDS, MindCache
from apps.memories.services.recall.recaller import Recaller
from apps.tenants.scope import tenant_transaction
from arbor.memory.recall.recall_request import RecallRequest
from arbor.memory.values import Recalled
from tests.integration.memories.embedding.moves import LONG

#: More than the differences by rounding.
DIFFERENCE = 1e-5


@contextmanager
def scanning() -> Iterator[None]:
    """Make each recall scan the database."""
    with override_settings(ARBOR_MIND_CACHE_MB=0):
        yield


@contextmanager
def caching(cache: MindCache = MINDS) -> Iterator[None]:
    """Make each recall read the mind from the cache, and load it if it is not cached there."""
    with (
        pytest.MonkeyPatch.context() as patch,
        override_settings(ARBOR_MIND_CACHE_MB=64),
    ):
        patch.setattr(mind_cache, "MEMORIES_PER_RECALL", 10**9)
        patch.setattr(recaller, "MINDS", cache)
        yield


def recall_both_ways(
    request: RecallRequest, *, cache: MindCache = MINDS
) -> tuple[list[Recalled], list[Recalled]]:
    """Recall from the cached mind and by the scan, in the open transaction; return both results, which must agree."""
    with caching(cache):
        (recalled,) = Recaller().recall([request])
    with scanning():
        (scanned,) = Recaller().recall([request])
    assert_equal(recalled, scanned)
    return recalled, scanned


def assert_equal(recalled: Sequence[Recalled], scanned: Sequence[Recalled]) -> None:
    """Compare two results: the same memories, whole, in the same order, with the same score components but for rounding."""
    plain = [replace(memory, terms=scanned[0].terms) for memory in recalled] if scanned else list(recalled)
    assert plain == [replace(memory, terms=scanned[0].terms) for memory in scanned]
    for memory, twin in zip(recalled, scanned, strict=True):
        assert memory.terms.as_dict() == pytest.approx(twin.terms.as_dict(), abs=DIFFERENCE)


def recall_everywhere(agent: Agent, *caches: MindCache, **fields: Any) -> list[Recalled]:
    """Recall from the mind cache of each process and by the scan, in a transaction; return their common result."""
    with tenant_transaction(agent.tenant_id):
        for cache in caches:
            recalled, _ = recall_both_ways(RecallRequest(agent_id=agent.id, **fields), cache=cache)
    return recalled


class Checker:
    """Recalls for an agent in two processes and by the scan, and checks that the results agree."""

    def __init__(self, agent: Agent, first: MindCache, second: MindCache) -> None:
        self._agent = agent
        self._caches = (first, second)

    def recall(self, *caches: MindCache, **fields: Any) -> list[Recalled]:
        """Return the result, which all processes and the scan have in common."""
        agent = self._agent
        with tenant_transaction(agent.tenant_id):
            model = model_of(agent.id)
        if "model" in fields or "vector" in fields:
            # The mind may have been given a model without an embedder.
            model = LONG
        (vector,) = embed_texts(tenant_id=agent.tenant_id, texts=["the colour of the boat"], model=model)
        values = {"text": "Ada's boat and its paint", "limit": 10, "now": datetime.now(UTC)}
        return recall_everywhere(
            agent, *(caches or self._caches), **{**values, "vector": vector, "model": model, **fields}
        )
