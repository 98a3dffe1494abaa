"""Periodic tasks of the scheduler. The due times of agents are rows instead."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from django.conf import settings

from apps.queues import QUEUE_OF, Task

#: The most by which the clocks of the scheduler's machine and of a worker's may differ: the worker compares the expiry of a
#: message, which the scheduler has computed, with its own clock, and drops an expired message unseen.
CLOCKS_WITHIN = timedelta(minutes=1)


def entries() -> dict[str, dict[str, Any]]:
    """Return the scheduler's entries; a message expires after its period, but not within CLOCKS_WITHIN."""
    periods = {
        Task.DISPATCH: settings.ARBOR_DISPATCH_PERIOD,
        Task.SWEEP_OUTBOX: settings.ARBOR_OUTBOX_PERIOD,
        Task.SWEEP_WEBHOOKS: timedelta(seconds=2),
        Task.SEAL_AUDIT: settings.ARBOR_AUDIT_SEAL_PERIOD,
        Task.SWEEP_WORKFLOWS: timedelta(seconds=5),
        Task.EMBED_BACKLOG: timedelta(seconds=10),
        Task.INDEX_DUE_DOCUMENTS: timedelta(seconds=30),
        Task.CLOSE_EPISODES: timedelta(minutes=1),
        Task.CONSOLIDATE: timedelta(minutes=1),
        # Assigns new memories; reclusters every ARBOR_CLUSTER_PERIOD_S.
        Task.ASSIGN_CLUSTERS: timedelta(minutes=2),
        Task.REFRESH_NEIGHBORHOODS: timedelta(minutes=1),
        Task.TRIM_ACTIVATIONS: timedelta(hours=1),
        Task.CLOSE_CONVERSATIONS: timedelta(seconds=30),
        Task.FADE_MEMORIES: timedelta(minutes=5),
        Task.CLEAN_UP_MEMORIES: timedelta(minutes=5),
        Task.ENFORCE_QUOTAS: timedelta(minutes=1),
        # Scores each agent once a day, and one with a breach at once.
        Task.SCORE_AGENTS: timedelta(minutes=1),
        Task.REINDEX_WORDS: timedelta(minutes=5),
        Task.EXPIRE_MEMORIES: timedelta(minutes=5),
        Task.EXPIRE_APPROVALS: timedelta(minutes=5),
        Task.PROMOTE_BUFFERS: timedelta(minutes=5),
        Task.TRIM_EMBEDDING_CACHE: timedelta(hours=1),
        Task.EMPTY_PROMPTS: timedelta(hours=1),
        Task.SWEEP_HISTORY: timedelta(minutes=10),
        Task.LEARN_RATIOS: timedelta(minutes=5),
        Task.LOAD_SKILLS: settings.ARBOR_SKILLS_PERIOD,
        # Seed 004, 6.1.
        Task.WATCH_HEALTH: timedelta(minutes=1),
        Task.FORGET_PROCESSES: timedelta(minutes=1),
        **({Task.EXPORT_SPANS: timedelta(seconds=10)} if settings.ARBOR_EXPORT_SPANS else {}),
    }
    return {
        task.value: {
            "task": task.value,
            "schedule": period,
            "options": {"queue": QUEUE_OF[task].value, "expires": max(period, CLOCKS_WITHIN).total_seconds()},
        }
        for task, period in periods.items()
    }
