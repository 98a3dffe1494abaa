"""The last run of each maintenance job, by which an operator notices a job that has stopped."""

from __future__ import annotations

from typing import ClassVar

from django.db import models
from django.db.models.functions import Now


class JobRun(models.Model):
    """The last run of one job. It belongs to the installation, and has counts only."""

    app_privileges: ClassVar[str] = "SELECT, INSERT, UPDATE"
    ops_privileges: ClassVar[str] = "SELECT"

    #: The task's name, as in `apps.queues.Task`.
    name = models.CharField(max_length=100, primary_key=True)
    #: It should run so often.
    period_s = models.FloatField(default=0)
    #: When it was first expected, when its last run ended, and the seconds that this took.
    first_at = models.DateTimeField(db_default=Now())
    ended_at = models.DateTimeField()
    seconds = models.FloatField()
    #: When it last ended without an error; empty: never.
    succeeded_at = models.DateTimeField(null=True)
    #: What it did, by its own count, and the steps that failed in it.
    done = models.IntegerField(default=0)
    failed = models.IntegerField(default=0)
    #: The kind of error that ended it; empty: none did.
    error = models.CharField(max_length=200, blank=True)

    class Meta:
        verbose_name = "job"

    def __str__(self) -> str:
        return self.name
