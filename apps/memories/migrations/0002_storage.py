"""How PostgreSQL keeps memories, so that recall reads one index and never the table."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("memories", "0001_initial")]

    operations = [
        migrations.RunSQL(
            # An index-only scan needs the visibility map: vacuum soon after inserts, by count.
            "ALTER TABLE memories_memory SET (autovacuum_vacuum_insert_scale_factor = 0,"
            " autovacuum_vacuum_insert_threshold = 5000, autovacuum_vacuum_scale_factor = 0.02)",
            "ALTER TABLE memories_memory RESET (autovacuum_vacuum_insert_scale_factor,"
            " autovacuum_vacuum_insert_threshold, autovacuum_vacuum_scale_factor)",
        ),
        migrations.RunSQL(
            # Vectors stay in the row, uncompressed: they do not compress, and reading them back costs more than scoring.
            "ALTER TABLE memories_memory ALTER COLUMN embedding SET STORAGE PLAIN",
            "ALTER TABLE memories_memory ALTER COLUMN embedding SET STORAGE EXTERNAL",
        ),
    ]
