"""An event and a fact of the same words are two memories."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0010_errand_tries"),
    ]

    operations = [
        migrations.RemoveConstraint(model_name="memory", name="memories_memory_content"),
        migrations.AddConstraint(
            model_name="memory",
            constraint=models.UniqueConstraint(
                fields=("tenant", "agent", "content_hash", "session", "position", "type"),
                name="memories_memory_content",
            ),
        ),
    ]
