"""Drives, mood and learned counts as packed JSON instead of jsonb: every heartbeat writes them, and no query looks into them."""

from __future__ import annotations

from django.db import migrations

import apps.tenants.fields

_COLUMNS = ("drives", "mood", "learned")
# The plain form of `apps.tenants.packing`: a byte 0, and the text. One rewrite; new values are compressed before they come here.
_PACKED = "ALTER TABLE agents_agentstate " + ", ".join(
    f"ALTER COLUMN {column} DROP DEFAULT,"
    f" ALTER COLUMN {column} TYPE bytea USING '\\x00'::bytea || convert_to({column}::text, 'UTF8'),"
    f" ALTER COLUMN {column} SET STORAGE EXTERNAL"
    for column in _COLUMNS
)


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0011_voices'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(_PACKED)],
            [
                migrations.AlterField('agentstate', column, apps.tenants.fields.PackedJSON(default=dict))
                for column in _COLUMNS
            ],
        )
    ]
