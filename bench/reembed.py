"""The time to move a full mind to another embedding dimension, and the cost of recall meanwhile."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from django.db import connections

from apps.memories.models import Mind
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.embedding.reembed import Reembedding, find_moves
from apps.memories.services.recall.recaller import recall
from apps.tenants.scope import tenant_transaction
from arbor.embedding.models import EmbeddingModel
from arbor.memory.recall.recall_request import RecallRequest
from bench import minds
from bench.support.database import connect_as_superuser
from bench.support.figures import print_progress, quantile
from bench.support.installation import Installation
from bench.support.population import ACTOR, BenchAgent, populate

_QUERIES = 100


def measure(installation: Installation, *, memories: int, agents: int) -> dict[str, Any]:
    """Return the pace of the new vectors, the time of the takeover, and recall before, meanwhile and afterwards."""
    population = populate(agents=agents, tenants=1)
    turns = minds.make_turns(memories)
    questions = minds.make_questions(turns, _QUERIES)
    with connect_as_superuser(installation) as database:
        minds.load(database, turns, population)
        model = installation_model()
        new = {"embedding_model": model.name, "embedding_dimension": model.dimension}
        for agent in population:
            with tenant_transaction(agent.tenant_id):
                Mind.objects.get_or_create(tenant_id=agent.tenant_id, agent_id=agent.agent_id, defaults=new)
        moved = population[0]
        _time_recalls(moved, questions)
        before = _time_recalls(moved, questions)
        print_progress(f"moving {memories} memories of one agent of {agents}")
        with _asking(moved, questions) as meanwhile:
            to_short = _move(moved, 128)
        after = _time_recalls(moved, questions)
        minds.vacuum(database)
        vacuumed = _time_recalls(moved, questions)
        back = _move(moved, minds.vector_length())
    return {
        "memories": memories,
        "agents": agents,
        **to_short,
        "takeover_back_s": back["takeover_s"],
        "recall_ms_p95": quantile(before, 0.95),
        "recall_meanwhile_ms_p95": quantile(meanwhile, 0.95),
        "recall_after_ms_p95": quantile(after, 0.95),
        "recall_vacuumed_ms_p95": quantile(vacuumed, 0.95),
        "recalls_meanwhile": len(meanwhile),
    }


def _move(agent: BenchAgent, dimension: int) -> dict[str, Any]:
    model = EmbeddingModel(name="wordllama", dimension=dimension)
    moves = find_moves(model=model, actor=ACTOR, tenant_id=agent.tenant_id, agent_id=agent.agent_id)
    started = time.perf_counter()
    (switched,) = Reembedding(model=model, actor=ACTOR).run(moves)
    took_s = time.perf_counter() - started
    assert (switched.left, switched.refused) == (0, 0)
    return {
        "vectors_per_s": round(switched.memories / (took_s - switched.seconds)),
        "takeover_s": round(switched.seconds, 2),
    }


def _time_recalls(agent: BenchAgent, questions: Sequence[str]) -> list[float]:
    ms = []
    for text in questions:
        begun = time.perf_counter()
        found = recall(tenant_id=agent.tenant_id, request=RecallRequest(agent_id=agent.agent_id, text=text))
        ms.append((time.perf_counter() - begun) * 1000)
        assert found
    return ms


@contextmanager
def _asking(agent: BenchAgent, questions: Sequence[str]) -> Iterator[list[float]]:
    """Recall in a thread for the duration of the block; durations in ms are added to the list."""
    ms: list[float] = []
    stop = threading.Event()

    def ask() -> None:
        try:
            while not stop.is_set():
                for text in questions[:10]:
                    ms.extend(_time_recalls(agent, [text]))
        finally:
            connections.close_all()

    with ThreadPoolExecutor(1) as pool:
        asking = pool.submit(ask)
        try:
            yield ms
        finally:
            stop.set()
        asking.result()
