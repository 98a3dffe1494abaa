"""Data that a worker loads before its pool forks."""

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
def empty_caches() -> None:
    """Clear the caches of this process."""
    graph._read.cache_clear()
    wordllama._load.cache_clear()


class FakeWorker:
    """A worker with only the attributes that the signal handler reads."""

    def __init__(self, queue: Queue) -> None:
        queues = SimpleNamespace(consume_from={queue.value: None})
        self.app = SimpleNamespace(amqp=SimpleNamespace(queues=queues))


def start_worker(celery: Celery, queue: Queue) -> tuple[int, int]:
    """Send the start signal of a worker of this queue; return the numbers of cached pipelines and embedders."""
    worker_init.send(sender=FakeWorker(queue))
    return graph._read.cache_info().currsize, wordllama._load.cache_info().currsize


def test_heartbeat_workers_preload_pipeline_and_embedder(celery: Celery, empty_caches: None) -> None:
    assert start_worker(celery, Queue.HEARTBEAT) == (1, 1)


@pytest.mark.parametrize("queue", [Queue.DISPATCH, Queue.LLM, Queue.CLEANUP])
def test_other_workers_preload_nothing(celery: Celery, empty_caches: None, queue: Queue) -> None:
    assert start_worker(celery, queue) == (0, 0)


def test_a_worker_starts_without_an_unavailable_embedder(
    celery: Celery, empty_caches: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(
        embedding,
        "installation_model",
        lambda: EmbeddingModel(name="nobody/knows", dimension=256),
    )
    assert start_worker(celery, Queue.HEARTBEAT) == (1, 0)
