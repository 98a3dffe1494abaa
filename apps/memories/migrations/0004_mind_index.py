"""The index of the mind, read faster: vectors of words uncompressed like those of meaning, fixed widths first."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0003_mind")]

    operations = [
        migrations.RunSQL(
            # Packed, a vector is copied each time it is scored, and tried to be compressed each time it is stored.
            # Changing the type of `embedding` has given that one its usual storage back.
            "ALTER TABLE memories_memory ALTER COLUMN lexical SET STORAGE PLAIN, ALTER COLUMN embedding SET STORAGE PLAIN",
            "ALTER TABLE memories_memory ALTER COLUMN lexical SET STORAGE EXTENDED",
        ),
        migrations.RemoveIndex(model_name="memory", name="memories_memory_mind"),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                fields=["tenant", "agent"],
                include=["id", "occurred_at", "expires_at", "embedding", "lexical", "session"],
                name="memories_memory_mind",
                condition=models.Q(status="active"),
            ),
        ),
    ]
