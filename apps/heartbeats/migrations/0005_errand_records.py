"""What of errands was left out and why, and those whose prompts are still kept."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_storage"),
        ("heartbeats", "0004_errand_retried"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalcall",
            name="dropped",
            field=models.JSONField(db_default=[], default=list),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=models.Q(
                    models.Q(("subject_key", ""), _negated=True),
                    ("status", "complete"),
                    models.Q(("request", {}), _negated=True),
                ),
                fields=["tenant", "ended_at"],
                name="heartbeats_errand_prompts",
            ),
        ),
    ]
