"""Every task of the fleet: ids in, one call, no rules. What a job returns is noted with its run (`workers.runs`)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any
from uuid import UUID

from celery import Task as CeleryTask

from apps.contacts.services.chat import answer_turn
from apps.contacts.services.chat_sweep import tend_chats
from apps.contacts.services.delivery import deliver
from apps.contacts.services.outbox_sweep import sweep_outbox
from apps.heartbeats.services.calls import execute_calls, fulfil_call
from apps.heartbeats.services.consolidation import consolidate, tend_episodes
from apps.heartbeats.services.errand_prompts import empty_prompts
from apps.heartbeats.services.processes import forget_silent_processes
from apps.heartbeats.services.schedule import dispatch
from apps.heartbeats.services.walk import advance_heartbeats
from apps.memories.services.clusters.job import tend_clusters
from apps.memories.services.embedding.backlog import embed_backlog
from apps.memories.services.graph.neighborhoods import refresh_neighborhoods
from apps.memories.services.jobs.health_watch import watch_health
from apps.memories.services.jobs.upkeep import expire_memories, trim_embedding_cache
from apps.memories.services.recall.activation import trim_activations
from apps.memories.services.retention.forgetting import clean_up_memories, fade_memories, keep_quotas
from apps.memories.services.retention.promotion import tend_buffers
from apps.queues import TENANT_HEADER, Task
from arbor.errors import TenantRequired
from workers.app import app
from workers.schedule import entries
from workers.threads import submit

#: Arguments of the further agents, or calls, that a message carries.
type Arguments = Sequence[Mapping[str, Any]]


def tenant_of(task: CeleryTask[Any, Any]) -> UUID:
    """Return the tenant that the message works for; raises TenantRequired for a message that names none."""
    named = (task.request.headers or {}).get(TENANT_HEADER) or task.request.get(TENANT_HEADER)
    if not named:
        raise TenantRequired(f"a message for {task.name} came without its header {TENANT_HEADER}")
    return UUID(named)


# A tick a second would push the heartbeats out of Flower's list.
@app.task(name=Task.DISPATCH.value, send_events=False)
def tick() -> None:
    """Claim what is due and what was lost."""
    dispatch()


@app.task(name=Task.ADVANCE.value, bind=True)
def advance(
    self: CeleryTask[Any, Any], *, agent_id: str, epoch: int, lost: bool = False, also: Arguments = ()
) -> None:
    """Walk heartbeats of agents of one tenant on, together; `lost`: after their worker was lost."""
    tenant_id = tenant_of(self)
    named = [{"agent_id": agent_id, "epoch": epoch}, *also]
    leases = [(UUID(str(arguments["agent_id"])), int(arguments["epoch"])) for arguments in named]
    advance_heartbeats(tenant_id=tenant_id, leases=leases, lost=lost)


@app.task(name=Task.FULFIL.value, bind=True)
def fulfil(self: CeleryTask[Any, Any], *, call_id: str, also: Arguments = ()) -> None:
    """Ask a model, or several at once."""
    tenant_id = tenant_of(self)
    named = [UUID(arguments["call_id"]) for arguments in [{"call_id": call_id}, *also]]
    if len(named) == 1:
        fulfil_call(call_id=named[0], tenant_id=tenant_id)
    else:
        execute_calls(call_ids=named, tenant_id=tenant_id, submit=submit)


@app.task(name=Task.DELIVER.value, bind=True)
def deliver_message(self: CeleryTask[Any, Any], *, message_id: str) -> None:
    """Deliver a message."""
    deliver(message_id=UUID(message_id), tenant_id=tenant_of(self))


# As often as the dispatcher's tick, it would push heartbeats out of Flower's list.
@app.task(name=Task.SWEEP_OUTBOX.value, send_events=False)
def sweep() -> object:
    """Tell of messages that wait untold, and of those that lost their worker."""
    return sweep_outbox().messages


@app.task(name=Task.ANSWER.value, bind=True)
def answer(self: CeleryTask[Any, Any], *, turn_id: str) -> None:
    """Answer a person who talks to an agent."""
    answer_turn(turn_id=UUID(turn_id), tenant_id=tenant_of(self))


@app.task(name=Task.CLOSE_CONVERSATIONS.value, acks_late=True)
def chats() -> object:
    """End idle conversations, and have lost turns answered."""
    return tend_chats()


@app.task(name=Task.EMBED_BACKLOG.value, acks_late=True)
def embed_waiting() -> object:
    """Embed the memories that have no vector yet."""
    return embed_backlog()


@app.task(name=Task.REFRESH_NEIGHBORHOODS.value, acks_late=True)
def refresh() -> object:
    """Compute the neighborhoods that are stale or missing."""
    return refresh_neighborhoods()


@app.task(name=Task.TRIM_ACTIVATIONS.value, acks_late=True)
def trim_mind() -> object:
    """Drop what has faded from mind."""
    return trim_activations()


@app.task(name=Task.CLOSE_EPISODES.value, acks_late=True)
def episodes() -> object:
    """Close episodes, and have closed ones summarized."""
    return tend_episodes()


@app.task(name=Task.CONSOLIDATE.value, acks_late=True)
def consolidation() -> object:
    """Take concepts, have memories weighed, bring lost errands back."""
    return consolidate()


@app.task(name=Task.ASSIGN_CLUSTERS.value, acks_late=True)
def clusters() -> object:
    """Assign new memories to clusters, and put clusters in order."""
    return tend_clusters()


@app.task(name=Task.FADE_MEMORIES.value, acks_late=True)
def fade() -> object:
    """Archive what has faded."""
    return fade_memories()


@app.task(name=Task.CLEAN_UP_MEMORIES.value, acks_late=True)
def clean_up() -> object:
    """Archive what was of little importance from the start."""
    return clean_up_memories()


@app.task(name=Task.KEEP_QUOTAS.value, acks_late=True)
def quotas() -> object:
    """Archive what is above an agent's quota."""
    return keep_quotas()


@app.task(name=Task.EXPIRE_MEMORIES.value, acks_late=True)
def expire() -> object:
    """Archive the memories whose time is over."""
    return expire_memories()


@app.task(name=Task.PROMOTE_BUFFERS.value, acks_late=True)
def buffers() -> object:
    """Make memories of what mattered among the things held, and let go of what is over."""
    return tend_buffers()


@app.task(name=Task.TRIM_EMBEDDING_CACHE.value, acks_late=True)
def trim_cache() -> object:
    """Drop what nobody has used for long from the embedding cache."""
    return trim_embedding_cache()


@app.task(name=Task.EMPTY_PROMPTS.value, acks_late=True)
def empty_old_prompts() -> object:
    """Empty the prompts of old errands."""
    return empty_prompts()


@app.task(name=Task.WATCH_HEALTH.value, acks_late=True)
def health() -> None:
    """Compute the figures of health, and tell of a change."""
    watch_health()


@app.task(name=Task.FORGET_PROCESSES.value, acks_late=True)
def forget_processes() -> object:
    """Forget processes that have not been heard of."""
    return forget_silent_processes()


app.conf.beat_schedule = entries()
