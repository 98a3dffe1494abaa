"""Data that a pool loads before it forks."""

from __future__ import annotations

from types import SimpleNamespace

import pytest
from celery import Celery
from celery.signals import worker_init

from apps.memories.services.embedding import embedding
from apps.queues import Queue
from arbor.adapters import wordllama
from arbor.embedding.models import EmbeddingModel
from arbor.pipeline import graph


@pytest.fixture
def cold() -> None:
    """Clear the caches of this process."""
    graph._read.cache_clear()
    wordllama._load.cache_clear()


class Beginning:
    """A worker, as far as the signal needs one."""

    def __init__(self, queue: Queue) -> None:
        queues = SimpleNamespace(consume_from={queue.value: None})
        self.app = SimpleNamespace(amqp=SimpleNamespace(queues=queues))


def begin(celery: Celery, queue: Queue) -> tuple[int, int]:
    """Let a worker of this queue begin; return how many pipelines and embedders its process then has."""
    worker_init.send(sender=Beginning(queue))
    return graph._read.cache_info().currsize, wordllama._load.cache_info().currsize


def test_a_pool_that_walks_heartbeats_has_the_pipeline_and_the_embedder_before_it_forks(
    celery: Celery, cold: None
) -> None:
    assert begin(celery, Queue.HEARTBEAT) == (1, 1)


@pytest.mark.parametrize("queue", [Queue.DISPATCH, Queue.LLM, Queue.CLEANUP])
def test_other_pools_do_without(celery: Celery, cold: None, queue: Queue) -> None:
    assert begin(celery, queue) == (0, 0)


def test_an_embedder_that_cannot_be_had_keeps_no_pool_from_beginning(
    celery: Celery, cold: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        embedding,
        "installation_model",
        lambda: EmbeddingModel(name="nobody/knows", dimension=256),
    )
    assert begin(celery, Queue.HEARTBEAT) == (1, 0)
