"""What every heartbeat needs is read before the pool forks: a child that takes the place of a lost one is at once ready.

Each would else read the pipeline and load the embedder's weights at its first heartbeat: most of a second of processor
time, and 60 MB that children now share.
"""

from __future__ import annotations

import gc
from typing import Any

import structlog
from celery.signals import worker_init

from apps.memories.services.embedding.embedding import ask, embedder
from apps.queues import Queue
from arbor.errors import ConfigurationInvalid, EmbeddingFailed
from arbor.heartbeat.steps.registry import HANDLERS
from arbor.pipeline.graph import heartbeat_text, load_graph

log = structlog.get_logger(__name__)

#: How many more objects there are before the garbage collector looks for cycles among the new ones. A batch of heartbeats
#: has thousands at a time, nearly all without cycles: at Python's 2,000 the collector took 0.5 ms of each heartbeat.
_COLLECTED_AFTER = 50_000


@worker_init.connect
def _warm_up(sender: Any, **_: Any) -> None:
    if Queue.HEARTBEAT.value not in sender.app.amqp.queues.consume_from:
        return
    load_graph(heartbeat_text(), handlers=HANDLERS)
    try:
        made = embedder()
        if made.in_process:
            ask(made, ["warm"])
    except (ConfigurationInvalid, EmbeddingFailed) as error:
        # Heartbeats say so themselves, each on its record.
        log.warning("embedder_not_loaded", error=str(error))


@worker_init.connect
def _collect_seldom(**_: Any) -> None:
    """Leave what is loaded alone, which stays for good, and look for cycles less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(_COLLECTED_AFTER)
