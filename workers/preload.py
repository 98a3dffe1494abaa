"""Load the pipeline, the embedder, tokenizers and boundaries before the pool forks, so that its children share them.

Loading them takes a child most of a second of processor time and 60 MB.
"""

from __future__ import annotations

import gc
from typing import Any

import structlog
from celery.signals import worker_init

from apps.memories.services.embedding.embedding import call_embedder, embedder
from apps.providers import token_counters
from apps.queues import Queue
from arbor.errors import ConfigurationInvalid, EmbeddingFailed
from arbor.heartbeat.steps import HANDLERS
from arbor.pipeline.graph import heartbeat_text, load_graph
from arbor.selves.boundaries import DEFAULT_BOUNDARIES
from arbor.selves.boundary_check import compile_boundaries

log = structlog.get_logger(__name__)


@worker_init.connect
def _preload(sender: Any, **_: Any) -> None:
    if Queue.HEARTBEAT.value not in sender.app.amqp.queues.consume_from:
        return
    load_graph(heartbeat_text(), handlers=HANDLERS)
    token_counters()
    compile_boundaries(DEFAULT_BOUNDARIES)
    try:
        connected = embedder()
        if connected.in_process:
            call_embedder(connected, ["warm"])
    except (ConfigurationInvalid, EmbeddingFailed) as error:
        # Each heartbeat records this error itself.
        log.warning("embedder_load_failed", error=str(error))


@worker_init.connect
def _exclude_loaded_objects(**_: Any) -> None:
    """Exclude loaded objects from garbage collection."""
    gc.collect()
    gc.freeze()
