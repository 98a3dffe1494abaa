"""Calls of maintenance: they belong to no heartbeat, and name their subject."""

from __future__ import annotations

from django.db import migrations, models

import apps.tenants.fields


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_storage"),
        ("heartbeats", "0002_storage"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.AddField(
            model_name="externalcall",
            name="due_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="externalcall",
            name="failures",
            field=models.PositiveSmallIntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name="externalcall",
            name="subject",
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name="externalcall",
            name="subject_key",
            field=models.CharField(blank=True, db_default="", max_length=60),
        ),
        migrations.AlterField(
            model_name="externalcall",
            name="heartbeat",
            field=apps.tenants.fields.TenantForeignKey(
                blank=True, deleting="CASCADE", null=True, related_name="calls", to="heartbeats.heartbeat"
            ),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=models.Q(
                    models.Q(("subject_key", ""), _negated=True),
                    ("status__in", ["pending", "running", "failed"]),
                ),
                fields=["tenant", "agent", "purpose"],
                name="heartbeats_errand_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=models.Q(
                    models.Q(("subject_key", ""), _negated=True), ("status__in", ["pending", "running"])
                ),
                fields=["tenant", "lease_until"],
                name="heartbeats_errand_lease",
            ),
        ),
        migrations.AddConstraint(
            model_name="externalcall",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    models.Q(("subject_key", ""), _negated=True), ("status__in", ["pending", "running"])
                ),
                fields=("tenant", "agent", "purpose", "subject_key"),
                name="heartbeats_errand_one_open",
            ),
        ),
        migrations.AddConstraint(
            model_name="externalcall",
            constraint=models.CheckConstraint(
                condition=models.Q(("heartbeat__isnull", True), ("subject_key", ""), _connector="XOR"),
                name="heartbeats_call_of_beat_or_errand",
            ),
        ),
    ]
