"""Schedules and percepts become models of the app `agents`; their tables stay as they are."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("heartbeats", "0002_calls")]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.DeleteModel(name="HeartbeatSchedule"),
                migrations.DeleteModel(name="Percept"),
            ]
        )
    ]
