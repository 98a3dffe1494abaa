"""Dependencies of plans are checked; those of plans from before count as met, because their steps went on without."""

from __future__ import annotations

from django.db import migrations, models

# The owner of the tables passes row-level security only while it is not forced.
_ALL_MET = """
DO $$
DECLARE
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'goals_plan'::regclass);
BEGIN
    IF forced THEN
        ALTER TABLE goals_plan NO FORCE ROW LEVEL SECURITY;
    END IF;
    UPDATE goals_plan SET met = dependencies WHERE dependencies <> '[]';
    IF forced THEN
        ALTER TABLE goals_plan FORCE ROW LEVEL SECURITY;
    END IF;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("goals", "0002_procedures")]

    operations = [
        migrations.AddField(
            model_name="plan",
            name="met",
            field=models.JSONField(blank=True, db_default=[], default=list),
        ),
        migrations.RunSQL(_ALL_MET, migrations.RunSQL.noop),
    ]
