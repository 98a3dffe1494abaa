"""Actions and changes of goals as packed JSON instead of jsonb: every heartbeat writes them, and no query looks into them."""

from __future__ import annotations

from django.db import migrations

import apps.heartbeats.models
import apps.tenants.fields

# The plain form of `apps.tenants.packing`: a byte 0, and the text. One rewrite; new values are compressed before they come here.
_PACKED = "ALTER TABLE heartbeats_heartbeat " + ", ".join(
    f"ALTER COLUMN {column} TYPE bytea USING '\\x00'::bytea || convert_to({column}::text, 'UTF8'),"
    f" ALTER COLUMN {column} SET STORAGE EXTERNAL"
    for column in ("actions", "goal_changes")
)


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0008_action_entries'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(_PACKED)],
            [
                migrations.AlterField('heartbeat', 'actions', apps.heartbeats.models.ActionEntries(default=list)),
                migrations.AlterField('heartbeat', 'goal_changes', apps.tenants.fields.PackedJSON(default=list)),
            ],
        )
    ]
