"""Processes of the installation."""

from __future__ import annotations

from typing import ClassVar

from django.db import models


class Process(models.Model):
    """A process that regularly reports itself as alive. The console reads these rows instead of asking the broker."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE, DELETE"
    ops_privileges: ClassVar[str] = "SELECT, DELETE"

    #: `HOST:PID`.
    name = models.CharField(max_length=200, primary_key=True)
    #: `worker` or `scheduler`.
    kind = models.CharField(max_length=12)
    #: Names of queues, separated by commas. Empty for a scheduler.
    queues = models.CharField(max_length=200, blank=True)
    pool = models.CharField(max_length=12, blank=True)
    concurrency = models.IntegerField(default=1)
    #: The handle of its model for agents without one of their own.
    model = models.CharField(max_length=200, blank=True, db_default="")
    #: {provider: {limit, sent, waiting}}: its calls to each provider that it has asked.
    calls = models.JSONField(default=dict, db_default={})
    started_at = models.DateTimeField()
    seen_at = models.DateTimeField()

    class Meta:
        verbose_name_plural = "processes"

    def __str__(self) -> str:
        return self.name
