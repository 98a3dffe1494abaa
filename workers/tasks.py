"""All Celery tasks: ids in, one call, no rules. `workers.runs` records the results of jobs."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from uuid import UUID

from celery import Task as CeleryTask
from celery.signals import worker_ready
from django.db import close_old_connections

from apps.calls.services.token_ratios import learn_token_ratios
from apps.contacts.services.chat import answer_turn
from apps.contacts.services.chat_sweep import close_conversations
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.contacts.services.signal_delivery import post_signals, sweep_webhooks
from apps.fleet.audit_seals import seal_audit
from apps.fleet.history import sweep_history
from apps.fleet.trust_scores import score_agents
from apps.heartbeats.services.calls.calls import execute_call, execute_calls
from apps.heartbeats.services.legs.runner import advance_heartbeats
from apps.heartbeats.services.processes import delete_silent_rows
from apps.heartbeats.services.reports.spans import export_spans
from apps.heartbeats.services.schedule import dispatch
from apps.knowledge.services.global_skills import reload_changed_skills
from apps.knowledge.services.indexing import index_document
from apps.knowledge.services.indexing_job import index_due_documents
from apps.maintenance.services.approvals import expire_overdue_approvals
from apps.maintenance.services.consolidation import consolidate, maintain_episodes
from apps.maintenance.services.prompts import empty_prompts
from apps.memories.services.clusters.job import maintain_clusters
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.embedding.embedding import trim_embedding_cache
from apps.memories.services.graph.neighborhoods import refresh_neighborhoods
from apps.memories.services.jobs.health import watch_health
from apps.memories.services.jobs.reindexing import reindex_words
from apps.memories.services.recall.activation import trim_activations
from apps.memories.services.retention.buffer import promote_buffers
from apps.memories.services.retention.forgetting import (
    clean_up_memories,
    enforce_quotas,
    expire_memories,
    fade_memories,
)
from apps.queues import TENANT_HEADER, Task
from apps.tools.services.servers import refresh_server_in_background
from apps.workflows.services.legs import advance_run
from apps.workflows.services.sweep import sweep_workflows
from arbor.errors import DeliveryFailed, TenantRequired
from workers.app import app
from workers.schedule import entries

#: The arguments of each further agent or call of a batch.
type Arguments = Sequence[Mapping[str, Any]]


def tenant_of(task: CeleryTask[Any, Any]) -> UUID:
    """Return the tenant in the message's header; raises TenantRequired without one."""
    tenant_id = (task.request.headers or {}).get(TENANT_HEADER) or task.request.get(TENANT_HEADER)
    if not tenant_id:
        raise TenantRequired(f"a message for {task.name} came without its header {TENANT_HEADER}")
    return UUID(tenant_id)


# `send_events=False`: the events of tasks that run every few seconds would push heartbeats out of Flower's list.
@app.task(name=Task.DISPATCH.value, send_events=False)
def dispatch_agents() -> None:
    """Claim due agents and expired leases."""
    dispatch()


@app.task(name=Task.ADVANCE.value, bind=True)
def run_heartbeats(
    self: CeleryTask[Any, Any], *, agent_id: str, epoch: int, lost: bool = False, also: Arguments = ()
) -> None:
    """Run heartbeats of agents of one tenant as a batch; `lost` means that the last worker lost their leases."""
    tenant_id = tenant_of(self)
    all_arguments = [{"agent_id": agent_id, "epoch": epoch}, *also]
    leases = [(UUID(str(arguments["agent_id"])), int(arguments["epoch"])) for arguments in all_arguments]
    advance_heartbeats(tenant_id=tenant_id, leases=leases, lost=lost)


@app.task(name=Task.ADVANCE_WORKFLOW.value, bind=True)
def advance_workflow_run(self: CeleryTask[Any, Any], *, run_id: str) -> None:
    """Walk a run of a workflow."""
    advance_run(run_id=UUID(run_id), tenant_id=tenant_of(self))


@app.task(name=Task.SWEEP_WORKFLOWS.value, send_events=False)
def sweep_workflow_runs() -> object:
    """Start scheduled workflows, and walk runs that are due or whose message was lost."""
    return sweep_workflows()


@app.task(name=Task.EXECUTE_CALL.value, bind=True)
def execute_external_calls(self: CeleryTask[Any, Any], *, call_id: str, also: Arguments = ()) -> None:
    """Execute external calls, several at once."""
    tenant_id = tenant_of(self)
    ids = [UUID(arguments["call_id"]) for arguments in [{"call_id": call_id}, *also]]
    if len(ids) == 1:
        execute_call(call_id=ids[0], tenant_id=tenant_id)
    else:
        execute_calls(call_ids=ids, tenant_id=tenant_id, submit=submit)


@app.task(name=Task.DELIVER.value, bind=True)
def deliver_message(self: CeleryTask[Any, Any], *, message_id: str) -> None:
    """Deliver a message."""
    deliver(message_id=UUID(message_id), tenant_id=tenant_of(self))


@app.task(name=Task.SWEEP_OUTBOX.value, send_events=False)
def sweep_outbox_messages() -> object:
    """Enqueue unsent messages again, and reclaim those whose worker died."""
    return sweep_outbox().messages


@app.task(name=Task.SWEEP_WEBHOOKS.value, send_events=False)
def sweep_signal_webhooks() -> object:
    """Enqueue webhooks with waiting signals."""
    return sweep_webhooks()


@app.task(name=Task.POST_SIGNALS.value, bind=True)
def post_waiting_signals(self: CeleryTask[Any, Any], *, webhook_id: str, lease: int) -> None:
    """Post the waiting signals of a webhook."""
    post_signals(webhook_id=UUID(webhook_id), lease=lease, tenant_id=tenant_of(self))


@app.task(name=Task.REFRESH_TOOLS.value, bind=True)
def refresh_tool_server(self: CeleryTask[Any, Any], *, server_id: str, actor: str) -> None:
    """List the tools of an MCP server; a failure is stored with the server."""
    refresh_server_in_background(server_id=UUID(server_id), tenant_id=tenant_of(self), actor=actor)


@app.task(name=Task.ANSWER.value, bind=True)
def answer_conversation_turn(self: CeleryTask[Any, Any], *, turn_id: str) -> None:
    """Answer a turn of a conversation."""
    answer_turn(turn_id=UUID(turn_id), tenant_id=tenant_of(self), execute=execute_call)


@app.task(name=Task.CLOSE_CONVERSATIONS.value, acks_late=True)
def close_idle_conversations() -> object:
    """Close idle conversations, and enqueue lost turns again."""
    return close_conversations()


@app.task(name=Task.EMBED_BACKLOG.value, acks_late=True)
def embed_waiting_memories() -> object:
    """Embed memories that have no vector."""
    return embed_backlog()


@app.task(name=Task.INDEX_DOCUMENT.value, bind=True, acks_late=True)
def index_one_document(self: CeleryTask[Any, Any], *, document_id: str) -> None:
    """Index a document."""
    index_document(document_id=UUID(document_id), tenant_id=tenant_of(self))


@app.task(name=Task.INDEX_DUE_DOCUMENTS.value, acks_late=True)
def index_waiting_documents() -> object:
    """Index documents whose message was lost, and embed passages without vectors."""
    return index_due_documents()


@app.task(name=Task.REFRESH_NEIGHBORHOODS.value, acks_late=True)
def refresh_stale_neighborhoods() -> object:
    """Compute stale and missing neighborhoods."""
    return refresh_neighborhoods()


@app.task(name=Task.TRIM_ACTIVATIONS.value, acks_late=True)
def delete_faded_activations() -> object:
    """Delete faded activations."""
    return trim_activations()


@app.task(name=Task.CLOSE_EPISODES.value, acks_late=True)
def close_ended_episodes() -> object:
    """Close episodes, and enqueue their summaries."""
    return maintain_episodes()


@app.task(name=Task.CONSOLIDATE.value, acks_late=True)
def consolidate_memories() -> object:
    """Extract concepts, appraise memories, recover lost maintenance calls."""
    return consolidate()


@app.task(name=Task.ASSIGN_CLUSTERS.value, acks_late=True)
def assign_clusters() -> object:
    """Assign memories to clusters, and recluster."""
    return maintain_clusters()


@app.task(name=Task.FADE_MEMORIES.value, acks_late=True)
def archive_faded_memories() -> object:
    """Archive faded memories."""
    return fade_memories()


@app.task(name=Task.CLEAN_UP_MEMORIES.value, acks_late=True)
def archive_trivial_memories() -> object:
    """Archive trivial memories."""
    return clean_up_memories()


@app.task(name=Task.ENFORCE_QUOTAS.value, acks_late=True)
def archive_above_quotas() -> object:
    """Archive memories above an agent's quota."""
    return enforce_quotas()


@app.task(name=Task.SCORE_AGENTS.value, acks_late=True)
def score_trust() -> object:
    """Score the trust in agents, and judge their proposals."""
    return score_agents()


@app.task(name=Task.REINDEX_WORDS.value, acks_late=True)
def reindex_detail_words() -> object:
    """Index the words of details again."""
    return reindex_words()


@app.task(name=Task.EXPIRE_MEMORIES.value, acks_late=True)
def archive_expired_memories() -> object:
    """Archive expired memories."""
    return expire_memories()


@app.task(name=Task.EXPIRE_APPROVALS.value, acks_late=True)
def expire_requests_for_approval() -> object:
    """Expire requests for approval that nobody decided in time."""
    return expire_overdue_approvals()


@app.task(name=Task.PROMOTE_BUFFERS.value, acks_late=True)
def promote_buffer_items() -> object:
    """Promote buffer items to memories, and delete expired ones."""
    return promote_buffers()


@app.task(name=Task.TRIM_EMBEDDING_CACHE.value, acks_late=True)
def evict_unused_embeddings() -> object:
    """Evict unused entries from the embedding cache."""
    return trim_embedding_cache()


@app.task(name=Task.EMPTY_PROMPTS.value, acks_late=True)
def empty_old_prompts() -> object:
    """Empty the prompts of old maintenance calls."""
    return empty_prompts()


@app.task(name=Task.SWEEP_HISTORY.value, acks_late=True)
def delete_old_history() -> object:
    """Delete heartbeats, calls, conversations and other records by age."""
    return sweep_history()


@app.task(name=Task.LEARN_RATIOS.value, acks_late=True)
def learn_ratios_of_models() -> object:
    """Learn how many tokens models count for one that Arbor estimated."""
    return learn_token_ratios()


@app.task(name=Task.LOAD_SKILLS.value, acks_late=True)
def load_changed_skills() -> None:
    """Load changed files of global skills."""
    reload_changed_skills()


@app.task(name=Task.WATCH_HEALTH.value, acks_late=True)
def compute_health_metrics() -> None:
    """Compute the health figures, and record changes of the state."""
    watch_health()


@app.task(name=Task.SEAL_AUDIT.value, acks_late=True)
def seal_audit_log() -> object:
    """Seal the audit log, and export the heads of its chains."""
    return seal_audit()


# The exporter logs why the collector accepts no spans; the next run exports them.
@app.task(name=Task.EXPORT_SPANS.value, acks_late=True, throws=(DeliveryFailed,))
def export_heartbeat_spans() -> object:
    """Export spans of heartbeats to an OpenTelemetry collector."""
    return export_spans()


@app.task(name=Task.FORGET_PROCESSES.value, acks_late=True)
def delete_silent_processes() -> object:
    """Delete rows of silent processes."""
    return delete_silent_rows()


app.conf.beat_schedule = entries()


_threads: ThreadPoolExecutor | None = None


def submit(work: Callable[[], None]) -> None:
    """Run a function in another thread if the pool of this worker consists of threads, else at once."""
    if _threads is None:
        work()
    else:
        _threads.submit(_run_and_release, work)


def _run_and_release(work: Callable[[], None]) -> None:
    try:
        work()
    finally:
        # Celery's signals, which `workers.connections` uses, do not reach this thread.
        close_old_connections()


@worker_ready.connect
def _create_threads(sender: Any, **_: Any) -> None:
    """Create the threads if this worker's pool consists of threads."""
    global _threads
    if type(sender.controller.pool).__module__.endswith("thread"):
        _threads = ThreadPoolExecutor(int(sender.controller.concurrency or 1), thread_name_prefix="call")
