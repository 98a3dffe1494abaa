"""Entries of actions without their usual values: those of older versions, with all of their keys, are read like new ones."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0007_not_done'),
    ]

    # The column did not change; 0009 packs it.
    operations = []
