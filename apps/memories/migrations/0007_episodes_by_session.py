"""Storing asks for the episodes of a session that are near a moment, and for its latest."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0006_embedding_upkeep")]

    operations = [
        migrations.AddIndex(
            model_name="episode",
            index=models.Index(
                fields=["tenant", "agent", "session", "-last_at"], name="memories_episode_session"
            ),
        ),
    ]
