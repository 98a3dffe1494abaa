"""Replies of calls as packed JSON instead of text: every heartbeat writes one, and no query looks into it."""

from __future__ import annotations

from django.db import migrations

import apps.tenants.fields

# The plain form of `apps.tenants.packing`: a byte 0, and the text, as a JSON string. One rewrite; new values are compressed before
# they come here.
_PACKED = """
ALTER TABLE calls_externalcall
    ALTER COLUMN reply TYPE bytea USING '\\x00'::bytea || convert_to(to_json(reply)::text, 'UTF8'),
    ALTER COLUMN reply SET STORAGE EXTERNAL
"""


class Migration(migrations.Migration):

    dependencies = [
        ('calls', '0006_inline_requests'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(_PACKED)],
            [migrations.AlterField('externalcall', 'reply', apps.tenants.fields.PackedJSON(default=""))],
        )
    ]
