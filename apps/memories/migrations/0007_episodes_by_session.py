"""What storing asks and writes most: the episodes of a session by time, and the counts of words."""

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
        # Every memory that is stored changes counts: with room beside them their index need not change too.
        migrations.RunSQL(
            "ALTER TABLE memories_term SET (fillfactor = 70)", "ALTER TABLE memories_term RESET (fillfactor)"
        ),
    ]
