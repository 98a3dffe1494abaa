"""What heartbeats saw, where they stood, what they passed and what they asked, as packed JSON instead of jsonb."""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Q

import apps.tenants.fields

# The plain form of `apps.tenants.packing`: a byte 0, and the text. New rows are compressed before they come here, so
# PostgreSQL need not try. One rewrite for each table, which no policy hides rows from.
PACKED = "TYPE bytea USING '\\x00'::bytea || convert_to({0}::text, 'UTF8')"
_BEATS = f"""
ALTER TABLE heartbeats_heartbeat
    ALTER COLUMN trace DROP DEFAULT,
    ADD COLUMN energy_unit varchar(20) NOT NULL DEFAULT '';
ALTER TABLE heartbeats_heartbeat
    ALTER COLUMN energy_unit TYPE varchar(20) USING left(coalesce(situation ->> 'energy_unit', ''), 20),
    ALTER COLUMN checkpoint {PACKED.format("checkpoint")},
    ALTER COLUMN situation {PACKED.format("situation")},
    ALTER COLUMN trace {PACKED.format("trace")};
ALTER TABLE heartbeats_heartbeat
    ALTER COLUMN checkpoint SET STORAGE EXTERNAL,
    ALTER COLUMN situation SET STORAGE EXTERNAL,
    ALTER COLUMN trace SET STORAGE EXTERNAL;
"""
_CALLS = f"""
ALTER TABLE heartbeats_externalcall
    ALTER COLUMN request {PACKED.format("request")},
    ALTER COLUMN sections {PACKED.format("sections")};
ALTER TABLE heartbeats_externalcall
    ALTER COLUMN request SET STORAGE EXTERNAL,
    ALTER COLUMN sections SET STORAGE EXTERNAL;
"""
_OLD_PROMPTS = ~Q(subject_key="") & Q(status="complete") & ~Q(request={})


class Migration(migrations.Migration):
    dependencies = [("heartbeats", "0009_words")]

    operations = [
        migrations.RemoveIndex(model_name="externalcall", name="heartbeats_errand_prompts"),
        migrations.SeparateDatabaseAndState(
            [migrations.RunSQL(_BEATS), migrations.RunSQL(_CALLS)],
            [
                migrations.AddField(
                    "heartbeat",
                    "energy_unit",
                    models.CharField(blank=True, db_default="", default="", max_length=20),
                ),
                migrations.AlterField(
                    "heartbeat", "checkpoint", apps.tenants.fields.PackedJSON(default=dict)
                ),
                migrations.AlterField("heartbeat", "situation", apps.tenants.fields.PackedJSON(default=dict)),
                migrations.AlterField("heartbeat", "trace", apps.tenants.fields.PackedList(default=list)),
                migrations.AlterField("externalcall", "request", apps.tenants.fields.PackedJSON()),
                migrations.AlterField("externalcall", "sections", apps.tenants.fields.PackedJSON(default=list)),
            ],
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                fields=["tenant", "ended_at"], name="heartbeats_errand_prompts", condition=_OLD_PROMPTS
            ),
        ),
    ]
