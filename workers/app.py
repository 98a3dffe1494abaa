"""The Celery application: JSON only, no results, messages as hints (the rows are the truth)."""

from __future__ import annotations

import logging
import os
from typing import Any

import django
from billiard.util import get_logger
from celery import Celery
from celery.signals import setup_logging
from django.conf import settings
from kombu import Queue as KombuQueue

from apps.queues import Queue
from workers import broker  # noqa: F401 (replaces kombu's transport)

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup()

app = Celery(
    "arbor",
    broker=settings.CELERY_BROKER_URL,
    # `runs` before `connections`: runs are recorded before connections are returned.
    include=[
        "workers.tasks",
        "workers.preload",
        "workers.liveness",
        "workers.runs",
        "workers.connections",
    ],
    # `workers.connections` replaces Celery's fixup for Django.
    fixups=[],
)
# Celery's current application is set per thread: other threads, such as those of the web server, need this default.
app.set_default()
app.conf.update(
    accept_content=["json"],
    task_serializer="json",
    result_serializer="json",
    task_ignore_result=True,
    task_queues=[KombuQueue(queue.value) for queue in Queue],
    task_create_missing_queues=False,
    # Early acknowledgement: leases alone recover heartbeats, so no visibility timeout can double them.
    task_acks_late=False,
    task_default_queue=Queue.CLEANUP.value,
    worker_prefetch_multiplier=1,
    worker_consumer="workers.broker:Consumer",
    worker_send_task_events=True,
    task_track_started=False,
    worker_soft_shutdown_timeout=5,
    worker_cancel_long_running_tasks_on_connection_loss=False,
    worker_hijack_root_logger=False,
    broker_connection_retry_on_startup=True,
    broker_connection_max_retries=None,
    broker_transport_options={
        "global_keyprefix": "arbor:",
        "visibility_timeout": 600,
        "unacked_restore_interval": 5,
        "unacked_restore_throttle": 1,
        "socket_timeout": 30,
        "socket_connect_timeout": 5,
        "socket_keepalive": True,
        "health_check_interval": 25,
        "max_connections": 100,
        "queue_order_strategy": "round_robin",
    },
    # Static entries (workers.schedule): no state to persist.
    beat_scheduler="workers.scheduler:Scheduler",
    beat_max_loop_interval=1,
    timezone="UTC",
)


@setup_logging.connect
def _preserve_logging(**_: Any) -> None:
    """Keep the logging of Django's settings, and let the pool log children that were killed."""
    # Celery configures this logger only when it sets up all logging.
    pool = get_logger()
    pool.propagate = True
    pool.setLevel(logging.ERROR)
