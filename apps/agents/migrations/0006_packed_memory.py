"""Working memories as packed JSON instead of jsonb: every heartbeat writes one, and no query looks into it."""

from __future__ import annotations

from django.db import migrations

import apps.tenants.fields

# The plain form of `apps.tenants.packing`: a byte 0, and the text. New values are compressed before they come here.
_PACKED = """
ALTER TABLE agents_agentstate
    ALTER COLUMN working_memory TYPE bytea USING '\\x00'::bytea || convert_to(working_memory::text, 'UTF8'),
    ALTER COLUMN working_memory SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):
    dependencies = [("agents", "0005_words")]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(_PACKED)],
            [
                migrations.AlterField(
                    "agentstate", "working_memory", apps.tenants.fields.PackedJSON(default=dict)
                )
            ],
        )
    ]
