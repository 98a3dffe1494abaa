"""Telling the fleet that there is work: by task name, after the commit, through this one door.

A message is only a hint. The rows say what there is to do, so one that is lost, doubled or late does no harm: leases
bring lost work back, and compare-and-set drops what is doubled.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from enum import StrEnum
from itertools import batched, zip_longest
from typing import Any
from uuid import UUID

import structlog
from celery import current_app
from django.db import transaction
from kombu.exceptions import OperationalError

from apps.tenants.scope import APP

log = structlog.get_logger(__name__)

#: Header of a message that names the tenant it works for. Under another tenant its rows are not to be found.
TENANT_HEADER = "arbor_tenant"
#: Tasks whose messages can carry the work of several agents of a tenant, and at most how many: each is done by itself.
#: Under this name stand the arguments of all but the first.
ALSO = "also"
MAX_BATCH_SIZE = 8
#: A broker that is away must not hold up the one who tells it: the lease brings the work back.
_PUBLISH_RETRIES = {"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5}


class Queue(StrEnum):
    """The queues, one pool of workers each."""

    #: Claims due agents, recovers lost leases.
    DISPATCH = "dispatch"
    #: Walks pipelines: short, bound by the processor.
    HEARTBEAT = "heartbeat"
    #: Waits for models: long, in threads.
    LLM = "llm"
    #: Delivers what agents send: waits for mail servers and webhooks, in threads.
    OUTBOX = "outbox"
    #: Embeds what waits for its vector.
    EMBEDDING = "embedding"
    #: Computes what a memory is near to.
    NEIGHBORHOODS = "neighborhoods"
    #: Closes episodes, and has them summarized.
    EPISODES = "episodes"
    #: Archives what has faded.
    DECAY = "decay"
    #: Expiry, early cleanup, trimming, the buffer.
    CLEANUP = "cleanup"
    #: Takes concepts, puts clusters in order, weighs memories, brings lost errands back, keeps minds within their quota.
    CONSOLIDATION = "consolidation"


class Task(StrEnum):
    """Every task, by name; `workers.tasks` holds exactly these."""

    #: Claim what is due and what was lost.
    DISPATCH = "arbor.dispatch.tick"
    #: Walk one agent's heartbeat on.
    ADVANCE = "arbor.heartbeats.advance"
    #: Ask a model.
    FULFIL = "arbor.calls.fulfil"
    #: Answer a person who talks to an agent.
    ANSWER = "arbor.chat.answer"
    #: Close the conversations that nobody goes on with, and have turns answered that were lost.
    CLOSE_CONVERSATIONS = "arbor.cleanup.tend_chats"
    #: Deliver a message.
    DELIVER = "arbor.outbox.deliver"
    #: Tell of messages that wait untold, and of those that lost their worker.
    SWEEP_OUTBOX = "arbor.outbox.sweep"
    #: Embed the memories that have no vector yet.
    EMBED_BACKLOG = "arbor.embedding.backlog"
    #: Compute the neighborhoods that are stale or missing.
    REFRESH_NEIGHBORHOODS = "arbor.neighborhoods.refresh"
    #: Drop what has faded from mind.
    TRIM_ACTIVATIONS = "arbor.cleanup.trim_activations"
    #: Close the episodes that are over, and have closed ones summarized.
    CLOSE_EPISODES = "arbor.episodes.tend"
    #: Take the concepts of new memories, have them weighed, bring lost errands back.
    CONSOLIDATE = "arbor.consolidation.tend"
    #: Assign new memories to clusters, and put clusters in order.
    ASSIGN_CLUSTERS = "arbor.consolidation.clusters"
    #: Archive what has faded.
    FADE_MEMORIES = "arbor.decay.fade_memories"
    #: Archive what was of little importance from the start.
    CLEAN_UP_MEMORIES = "arbor.cleanup.clean_up_memories"
    #: Archive what is above an agent's quota.
    KEEP_QUOTAS = "arbor.consolidation.keep_quotas"
    #: Archive the memories whose time is over.
    EXPIRE_MEMORIES = "arbor.cleanup.expire_memories"
    #: Make memories of what mattered among the things held, and let go of what is over.
    PROMOTE_BUFFERS = "arbor.cleanup.tend_buffers"
    #: Drop what nobody has used for long from the embedding cache.
    TRIM_EMBEDDING_CACHE = "arbor.cleanup.trim_embedding_cache"
    #: Empty the prompts of old errands.
    EMPTY_PROMPTS = "arbor.cleanup.empty_prompts"
    #: Compute the figures of health, and tell of a change.
    WATCH_HEALTH = "arbor.cleanup.watch_health"
    #: Forget processes that have not been heard of.
    FORGET_PROCESSES = "arbor.cleanup.forget_processes"


QUEUE_OF: dict[Task, Queue] = {
    Task.DISPATCH: Queue.DISPATCH,
    Task.ADVANCE: Queue.HEARTBEAT,
    Task.FULFIL: Queue.LLM,
    Task.ANSWER: Queue.LLM,
    Task.CLOSE_CONVERSATIONS: Queue.CLEANUP,
    Task.DELIVER: Queue.OUTBOX,
    Task.SWEEP_OUTBOX: Queue.OUTBOX,
    Task.EMBED_BACKLOG: Queue.EMBEDDING,
    Task.CLOSE_EPISODES: Queue.EPISODES,
    Task.CONSOLIDATE: Queue.CONSOLIDATION,
    Task.ASSIGN_CLUSTERS: Queue.CONSOLIDATION,
    Task.REFRESH_NEIGHBORHOODS: Queue.NEIGHBORHOODS,
    Task.TRIM_ACTIVATIONS: Queue.CLEANUP,
    Task.FADE_MEMORIES: Queue.DECAY,
    Task.CLEAN_UP_MEMORIES: Queue.CLEANUP,
    Task.KEEP_QUOTAS: Queue.CONSOLIDATION,
    Task.EXPIRE_MEMORIES: Queue.CLEANUP,
    Task.PROMOTE_BUFFERS: Queue.CLEANUP,
    Task.TRIM_EMBEDDING_CACHE: Queue.CLEANUP,
    Task.EMPTY_PROMPTS: Queue.CLEANUP,
    Task.WATCH_HEALTH: Queue.CLEANUP,
    Task.FORGET_PROCESSES: Queue.CLEANUP,
}


BATCHED_TASKS = frozenset({Task.ADVANCE, Task.FULFIL})


@dataclass(frozen=True, kw_only=True)
class Message:
    """One hint to the fleet."""

    task: Task
    tenant_id: UUID
    #: Ids, as text.
    arguments: dict[str, Any]
    #: How Flower shows the arguments: names for people.
    shown: str
    #: Nothing else goes with it: it may be what its last worker died of.
    alone: bool = False


_captured: ContextVar[list[Message] | None] = ContextVar("arbor_captured_messages", default=None)


def enqueue(*messages: Message, using: str = APP) -> None:
    """Publish messages when the transaction of that database has committed, those for one task and tenant together."""
    sink = _captured.get()
    if sink is not None:
        send: Callable[[Sequence[Message]], object] = sink.extend
    else:
        send = publish_together
    if messages:
        # Robust: an error that the broker's client has no name for is logged, and the messages behind it still go.
        transaction.on_commit(lambda: send(messages), using=using, robust=True)


def publish(message: Message) -> bool:
    """Publish now; tell whether the broker took it."""
    return _send([message])


def publish_together(messages: Iterable[Message]) -> None:
    """Publish messages, those for one task and tenant together: they share the cost of one message."""
    alike: dict[tuple[Task, UUID], list[Message]] = defaultdict(list)
    for message in messages:
        if message.alone or message.task not in BATCHED_TASKS:
            _send([message])
        else:
            alike[message.task, message.tenant_id].append(message)
    # By turns, so that no tenant's work waits behind all of another's.
    for round_ in zip_longest(
        *(batched(alike_messages, MAX_BATCH_SIZE, strict=False) for alike_messages in alike.values())
    ):
        for batch in round_:
            if batch:
                _send(batch)


def _send(messages: Sequence[Message]) -> bool:
    first, *others = messages
    also = {ALSO: [other.arguments for other in others]} if others else {}
    shown = f"{first.shown} and {len(others)} more" if others else first.shown
    try:
        current_app.send_task(
            first.task.value,
            kwargs=first.arguments | also,
            queue=QUEUE_OF[first.task].value,
            headers={TENANT_HEADER: str(first.tenant_id)},
            argsrepr=shown,
            kwargsrepr=shown,
            retry_policy=_PUBLISH_RETRIES,
        )
    except OperationalError as error:
        log.warning(
            "broker_unreachable",
            task=first.task,
            work=shown,
            error=str(error),
            remedy="its lease brings it back",
        )
        return False
    return True


@contextmanager
def captured() -> Iterator[list[Message]]:
    """Collect messages instead of publishing them: for a heartbeat that is run in this very process."""
    messages: list[Message] = []
    token = _captured.set(messages)
    try:
        yield messages
    finally:
        _captured.reset(token)
