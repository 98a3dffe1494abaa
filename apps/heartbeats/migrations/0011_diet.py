"""Indexes of what is written most: without the columns that change while a heartbeat runs, so that its updates are HOT.

What an index names in its condition counts too. Generated columns that do not change meanwhile take the place of states
and leases there. The tables are written anew, with room for the versions of a row beside it.
"""

from __future__ import annotations

from django.db import migrations, models
from django.db.models import Case, Q, Value, When

import apps.tenants.fields

_ROOM = """
ALTER TABLE heartbeats_heartbeatschedule SET (fillfactor = 50);
ALTER TABLE heartbeats_externalcall SET (fillfactor = 40);
"""


class Migration(migrations.Migration):
    dependencies = [("heartbeats", "0010_packed")]

    operations = [
        migrations.RemoveIndex(model_name="heartbeat", name="heartbeats_by_time_all"),
        migrations.RemoveIndex(model_name="heartbeatschedule", name="heartbeats_due"),
        migrations.RemoveIndex(model_name="heartbeatschedule", name="heartbeats_due_tenant"),
        migrations.RemoveIndex(model_name="heartbeatschedule", name="heartbeats_lease"),
        migrations.RemoveIndex(model_name="externalcall", name="heartbeats_errand_unfinished"),
        migrations.RemoveIndex(model_name="externalcall", name="heartbeats_errand_lease"),
        migrations.RemoveIndex(model_name="externalcall", name="heartbeats_errand_prompts"),
        migrations.RemoveConstraint(model_name="externalcall", name="heartbeats_errand_one_open"),
        # Before the columns, which write the tables anew. A call grows by its reply.
        migrations.RunSQL(_ROOM, migrations.RunSQL.noop),
        migrations.AddField(
            model_name="heartbeatschedule",
            name="in_flight",
            field=apps.tenants.fields.StoredField(
                expression=Case(
                    When(state__in=["queued", "running"], then=Value(True)),
                    When(state="idle", then=Value(False)),
                ),
                output_field=models.BooleanField(null=True),
            ),
        ),
        migrations.AddField(
            model_name="externalcall",
            name="errand_status",
            field=apps.tenants.fields.StoredField(
                expression=Case(When(~Q(subject_key=""), then="status")),
                output_field=models.CharField(max_length=8, null=True),
            ),
        ),
        migrations.AddField(
            model_name="externalcall",
            name="errand_lease",
            field=apps.tenants.fields.StoredField(
                expression=Case(When(~Q(subject_key=""), then="lease_until")),
                output_field=models.DateTimeField(null=True),
            ),
        ),
        migrations.AddIndex(
            model_name="heartbeatschedule",
            index=models.Index(condition=Q(in_flight=False), fields=["next_due_at"], name="heartbeats_due"),
        ),
        migrations.AddIndex(
            model_name="heartbeatschedule",
            index=models.Index(
                condition=Q(in_flight=False), fields=["tenant", "next_due_at"], name="heartbeats_due_tenant"
            ),
        ),
        migrations.AddIndex(
            model_name="heartbeatschedule",
            index=models.Index(
                condition=Q(in_flight=True), fields=["tenant", "agent"], name="heartbeats_in_flight"
            ),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=Q(errand_status__in=["pending", "running", "failed"]),
                fields=["tenant", "agent", "purpose"],
                name="heartbeats_errand_unfinished",
            ),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=Q(errand_status__in=["pending", "running"]),
                fields=["tenant", "errand_lease"],
                name="heartbeats_errand_lease",
            ),
        ),
        migrations.AddIndex(
            model_name="externalcall",
            index=models.Index(
                condition=Q(errand_status="complete") & ~Q(request={}),
                fields=["tenant", "requested_at"],
                name="heartbeats_errand_prompts",
            ),
        ),
        migrations.AddConstraint(
            model_name="externalcall",
            constraint=models.UniqueConstraint(
                condition=Q(errand_status__in=["pending", "running"]),
                fields=["tenant", "agent", "purpose", "subject_key"],
                name="heartbeats_errand_one_open",
            ),
        ),
    ]
