"""Who said what is held, and which of it mattered."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_storage"),
        ("memories", "0007_episodes_by_session"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="bufferitem",
            name="role",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddIndex(
            model_name="bufferitem",
            index=models.Index(
                condition=models.Q(
                    ("promoted_to__isnull", True),
                    models.Q(("importance__gte", 0.75), ("accesses__gte", 3), _connector="OR"),
                ),
                fields=["tenant", "agent"],
                name="memories_buffer_mattering",
            ),
        ),
    ]
