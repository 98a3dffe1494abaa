"""The table of signals, and the functions that number its rows."""

import apps.tenants.fields
import apps.tenants.table_creation
import django.db.models.deletion
from django.db import migrations, models


# `apps.signals.services.positions` replaces these functions after a restore.
FUNCTIONS = """
CREATE FUNCTION signals_row_id(tick bigint) RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex(0 + pg_current_xact_id()::text::bigint), 16, '0') || lpad(to_hex(tick), 16, '0'))::uuid
$$;
CREATE FUNCTION signals_horizon() RETURNS uuid LANGUAGE sql STABLE AS $$
    SELECT (lpad(to_hex(0 + pg_snapshot_xmin(pg_current_snapshot())::text::bigint), 16, '0')
        || '0000000000000000')::uuid
$$;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('signals', '0001_initial'),
        ('signals', '0002_of_the_tenant'),
    ]

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='SignalBatch',
                    fields=[
                        ('id', models.UUIDField(editable=False, primary_key=True, serialize=False)),
                        ('agent_id', models.UUIDField(null=True)),
                        ('heartbeat_id', models.UUIDField(null=True)),
                        ('at', models.DateTimeField()),
                        ('signals', apps.tenants.fields.PackedList(default=list)),
                        ('tenant', models.ForeignKey(db_constraint=False, db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'batch of signals',
                        'verbose_name_plural': 'batches of signals',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent_id', 'id'], name='signals_batch_by_agent')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(FUNCTIONS, "DROP FUNCTION signals_row_id(bigint); DROP FUNCTION signals_horizon();"),
    ]
