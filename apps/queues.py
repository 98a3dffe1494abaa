"""Queues and tasks by name, and the helper that enqueues tasks after the commit.

A message is a hint. The rows are the truth, so a message may be lost, doubled or late: expired leases are claimed
again, and compare-and-set drops doubles.
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

#: Header with the id of the message's tenant. Row-level security hides the rows of other tenants.
TENANT_HEADER = "arbor_tenant"
#: Argument with the arguments of all agents (or calls) of a batch but the first.
ALSO = "also"
#: Agents of a tenant, or calls, that one message carries at most.
MAX_BATCH_SIZE = 8
#: Few retries: an unreachable broker must not block the publisher, and expired leases are claimed again.
_PUBLISH_RETRIES = {"max_retries": 2, "interval_start": 0, "interval_step": 0.2, "interval_max": 0.5}


class Queue(StrEnum):
    """The queues, each with a pool of workers."""

    #: Claims due agents, recovers lost leases.
    DISPATCH = "dispatch"
    #: Runs legs of heartbeats and workflows: short, CPU-bound.
    HEARTBEAT = "heartbeat"
    #: Calls models: long, I/O-bound, in threads.
    LLM = "llm"
    #: Delivers messages and signals, and does other work that needs the network, the master key or all tenants: I/O-bound, in threads.
    OUTBOX = "outbox"
    #: Embeds memories that have no vector.
    EMBEDDING = "embedding"
    #: Computes neighborhoods of memories.
    NEIGHBORHOODS = "neighborhoods"
    #: Closes episodes, and enqueues their summaries.
    EPISODES = "episodes"
    #: Archives faded memories.
    DECAY = "decay"
    #: Expires, trims, promotes and deletes by age; ends idle conversations, and watches health.
    CLEANUP = "cleanup"
    #: Indexes documents.
    DOCUMENTS = "documents"
    #: Extracts concepts, clusters, appraises and reindexes memories, recovers maintenance calls, enforces quotas, scores agents.
    CONSOLIDATION = "consolidation"


class Task(StrEnum):
    """All tasks by name; `workers.tasks` defines exactly these."""

    #: Claim due agents and expired leases.
    DISPATCH = "arbor.dispatch.claim_due"
    #: Run heartbeats to their next suspension or end.
    ADVANCE = "arbor.heartbeats.advance"
    #: Walk a run of a workflow to its next suspension or end.
    ADVANCE_WORKFLOW = "arbor.workflows.advance"
    #: Start scheduled workflows, and walk runs whose time has come or whose message was lost.
    SWEEP_WORKFLOWS = "arbor.workflows.sweep"
    #: Execute an external call.
    EXECUTE_CALL = "arbor.calls.execute"
    #: Answer a turn of a conversation.
    ANSWER = "arbor.chat.answer"
    #: End idle conversations, and re-enqueue turns whose message or worker was lost.
    CLOSE_CONVERSATIONS = "arbor.cleanup.close_conversations"
    #: Deliver a message.
    DELIVER = "arbor.outbox.deliver"
    #: Enqueue unsent messages again, and reclaim those whose worker died.
    SWEEP_OUTBOX = "arbor.outbox.sweep"
    #: Enqueue webhooks with waiting signals.
    SWEEP_WEBHOOKS = "arbor.outbox.sweep_webhooks"
    #: Post the waiting signals of a webhook.
    POST_SIGNALS = "arbor.outbox.post_signals"
    #: Seal the audit log, and export the heads of its chains.
    SEAL_AUDIT = "arbor.outbox.seal_audit"
    #: List the tools of an MCP server.
    REFRESH_TOOLS = "arbor.outbox.refresh_tools"
    #: Embed memories that have no vector.
    EMBED_BACKLOG = "arbor.embedding.backlog"
    #: Index a document.
    INDEX_DOCUMENT = "arbor.documents.index"
    #: Index documents whose message was lost, and embed passages without vectors.
    INDEX_DUE_DOCUMENTS = "arbor.documents.index_due"
    #: Compute stale and missing neighborhoods.
    REFRESH_NEIGHBORHOODS = "arbor.neighborhoods.refresh"
    #: Delete faded activations.
    TRIM_ACTIVATIONS = "arbor.cleanup.trim_activations"
    #: Close episodes that are over, and enqueue their summaries.
    CLOSE_EPISODES = "arbor.episodes.close"
    #: Extract concepts, appraise memories, recover lost maintenance calls.
    CONSOLIDATE = "arbor.consolidation.enqueue_calls"
    #: Assign memories to clusters, and recluster.
    ASSIGN_CLUSTERS = "arbor.consolidation.clusters"
    #: Archive faded memories.
    FADE_MEMORIES = "arbor.decay.fade_memories"
    #: Archive trivial memories.
    CLEAN_UP_MEMORIES = "arbor.cleanup.clean_up_memories"
    #: Archive memories above an agent's quota.
    ENFORCE_QUOTAS = "arbor.consolidation.keep_quotas"
    #: Score the trust in agents, and judge their proposals.
    SCORE_AGENTS = "arbor.consolidation.score_agents"
    #: Index the words of memories' details again.
    REINDEX_WORDS = "arbor.consolidation.reindex_words"
    #: Archive expired memories.
    EXPIRE_MEMORIES = "arbor.cleanup.expire_memories"
    #: Expire requests for approval.
    EXPIRE_APPROVALS = "arbor.cleanup.expire_approvals"
    #: Promote buffer items to memories, and delete expired ones.
    PROMOTE_BUFFERS = "arbor.cleanup.promote_buffers"
    #: Evict unused entries from the embedding cache.
    TRIM_EMBEDDING_CACHE = "arbor.cleanup.trim_embedding_cache"
    #: Empty the prompts of old maintenance calls.
    EMPTY_PROMPTS = "arbor.cleanup.empty_prompts"
    #: Delete heartbeats, calls, conversations and other records by age.
    SWEEP_HISTORY = "arbor.cleanup.sweep_history"
    #: Learn the tokens that models count for an estimated one.
    LEARN_RATIOS = "arbor.cleanup.learn_ratios"
    #: Load changed files of global skills.
    LOAD_SKILLS = "arbor.cleanup.load_skills"
    #: Compute the health figures, and record changes of the state.
    WATCH_HEALTH = "arbor.cleanup.watch_health"
    #: Export spans of heartbeats to an OpenTelemetry collector.
    EXPORT_SPANS = "arbor.outbox.export_spans"
    #: Delete rows of silent processes.
    FORGET_PROCESSES = "arbor.cleanup.forget_processes"


QUEUE_OF: dict[Task, Queue] = {
    Task.DISPATCH: Queue.DISPATCH,
    Task.ADVANCE: Queue.HEARTBEAT,
    Task.ADVANCE_WORKFLOW: Queue.HEARTBEAT,
    Task.EXECUTE_CALL: Queue.LLM,
    Task.ANSWER: Queue.LLM,
    Task.CLOSE_CONVERSATIONS: Queue.CLEANUP,
    Task.DELIVER: Queue.OUTBOX,
    Task.SWEEP_OUTBOX: Queue.OUTBOX,
    Task.SWEEP_WEBHOOKS: Queue.OUTBOX,
    Task.POST_SIGNALS: Queue.OUTBOX,
    # The queue has the master key, with which seals are signed, and exports their heads.
    Task.SEAL_AUDIT: Queue.OUTBOX,
    # The queue has the role of operations, which finds due tenants, and the master key, with which agents sign.
    Task.SWEEP_WORKFLOWS: Queue.OUTBOX,
    Task.REFRESH_TOOLS: Queue.OUTBOX,
    Task.EMBED_BACKLOG: Queue.EMBEDDING,
    Task.INDEX_DOCUMENT: Queue.DOCUMENTS,
    Task.INDEX_DUE_DOCUMENTS: Queue.DOCUMENTS,
    Task.CLOSE_EPISODES: Queue.EPISODES,
    Task.CONSOLIDATE: Queue.CONSOLIDATION,
    Task.ASSIGN_CLUSTERS: Queue.CONSOLIDATION,
    Task.SCORE_AGENTS: Queue.CONSOLIDATION,
    Task.REFRESH_NEIGHBORHOODS: Queue.NEIGHBORHOODS,
    Task.TRIM_ACTIVATIONS: Queue.CLEANUP,
    Task.FADE_MEMORIES: Queue.DECAY,
    Task.CLEAN_UP_MEMORIES: Queue.CLEANUP,
    Task.ENFORCE_QUOTAS: Queue.CONSOLIDATION,
    Task.REINDEX_WORDS: Queue.CONSOLIDATION,
    Task.EXPIRE_MEMORIES: Queue.CLEANUP,
    Task.EXPIRE_APPROVALS: Queue.CLEANUP,
    Task.PROMOTE_BUFFERS: Queue.CLEANUP,
    Task.TRIM_EMBEDDING_CACHE: Queue.CLEANUP,
    Task.EMPTY_PROMPTS: Queue.CLEANUP,
    Task.SWEEP_HISTORY: Queue.CLEANUP,
    Task.LEARN_RATIOS: Queue.CLEANUP,
    Task.LOAD_SKILLS: Queue.CLEANUP,
    Task.WATCH_HEALTH: Queue.CLEANUP,
    Task.FORGET_PROCESSES: Queue.CLEANUP,
    Task.EXPORT_SPANS: Queue.OUTBOX,
}

#: Tasks whose messages carry batches.
BATCHED_TASKS = frozenset({Task.ADVANCE, Task.EXECUTE_CALL})


@dataclass(frozen=True, kw_only=True)
class TaskMessage:
    """A message to the workers."""

    task: Task
    tenant_id: UUID
    #: Ids as text, and other plain values.
    arguments: dict[str, Any]
    #: The arguments as Flower shows them, with names for people.
    shown: str
    #: Never batched: it may be the reason that its last worker died.
    alone: bool = False


_captured: ContextVar[list[TaskMessage] | None] = ContextVar("arbor_captured_messages", default=None)


def enqueue(*messages: TaskMessage, using: str = APP) -> None:
    """Publish messages, those of one task and tenant as batches, after the commit of the transaction of the database `using`."""
    sink = _captured.get()
    if sink is not None:
        send: Callable[[Sequence[TaskMessage]], object] = sink.extend
    else:
        send = publish_batched
    if messages:
        # Robust: an unexpected error of the broker's client is logged, and later callbacks still run.
        transaction.on_commit(lambda: send(messages), using=using, robust=True)


def publish(message: TaskMessage) -> bool:
    """Publish a message now; return whether the broker accepted it."""
    return _send([message])


def publish_batched(messages: Iterable[TaskMessage]) -> None:
    """Publish messages, those of one task and tenant as batches, which share the cost of one message."""
    groups: dict[tuple[Task, UUID], list[TaskMessage]] = defaultdict(list)
    for message in messages:
        if message.alone or message.task not in BATCHED_TASKS:
            _send([message])
        else:
            groups[message.task, message.tenant_id].append(message)
    # Round robin, so that no tenant waits for all messages of another.
    for round_ in zip_longest(*(batched(group, MAX_BATCH_SIZE, strict=False) for group in groups.values())):
        for batch in round_:
            if batch:
                _send(batch)


def _send(messages: Sequence[TaskMessage]) -> bool:
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
            remedy="it is claimed again when its lease expires",
        )
        return False
    return True


@contextmanager
def captured() -> Iterator[list[TaskMessage]]:
    """Collect messages instead of publishing them, for a heartbeat that runs in this process."""
    messages: list[TaskMessage] = []
    token = _captured.set(messages)
    try:
        yield messages
    finally:
        _captured.reset(token)
