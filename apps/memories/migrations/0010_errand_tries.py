"""How often errands were answered without a memory, and since when a mind is one."""

from __future__ import annotations

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0009_runs"),
    ]

    operations = [
        migrations.AddField(
            model_name="upkeep",
            name="extract_tries",
            field=models.PositiveSmallIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="upkeep",
            name="weigh_tries",
            field=models.PositiveSmallIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="mind",
            name="created_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
    ]
