"""How often a job should run, and since when it is known."""

from __future__ import annotations

import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0008_buffer"),
    ]

    operations = [
        migrations.AddField(
            model_name="jobrun",
            name="first_at",
            field=models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
        ),
        migrations.AddField(
            model_name="jobrun",
            name="period_s",
            field=models.FloatField(default=0),
        ),
    ]
