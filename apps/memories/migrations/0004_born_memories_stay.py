"""Make the memories that agents were born with permanent."""

from __future__ import annotations

from django.db import migrations

# The owner of the table bypasses row-level security only while it is not forced.
_MAKE_PERMANENT = """
DO $$
DECLARE
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'memories_memory'::regclass);
BEGIN
    IF forced THEN
        ALTER TABLE memories_memory NO FORCE ROW LEVEL SECURITY;
    END IF;
    UPDATE memories_memory SET retention = 'permanent'
    WHERE source LIKE 'template:%' AND decay_rate = 0 AND retention = 'lasting';
    IF forced THEN
        ALTER TABLE memories_memory FORCE ROW LEVEL SECURITY;
    END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("memories", "0003_buffer_trust")]

    operations = [migrations.RunSQL(_MAKE_PERMANENT, migrations.RunSQL.noop)]
