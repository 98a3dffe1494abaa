"""The tables of the app `heartbeats`."""

import apps.heartbeats.models
import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


_STORAGE = """
ALTER TABLE heartbeats_heartbeat SET (fillfactor = 70);
-- Packed values are compressed before they come here, so PostgreSQL need not try.
ALTER TABLE heartbeats_heartbeat
    ALTER COLUMN checkpoint SET STORAGE EXTERNAL,
    ALTER COLUMN situation SET STORAGE EXTERNAL,
    ALTER COLUMN trace SET STORAGE EXTERNAL,
    ALTER COLUMN actions SET STORAGE EXTERNAL,
    ALTER COLUMN goal_changes SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('heartbeats', '0001_squashed'),
        ('heartbeats', '0002_calls'),
        ('heartbeats', '0003_schedules_moved'),
        ('heartbeats', '0004_process_models'),
        ('heartbeats', '0005_by_memory'),
        ('heartbeats', '0006_span_export'),
        ('heartbeats', '0007_not_done'),
        ('heartbeats', '0008_action_entries'),
        ('heartbeats', '0009_packed_actions'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('memories', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='Process',
                    fields=[
                        ('name', models.CharField(max_length=200, primary_key=True, serialize=False)),
                        ('kind', models.CharField(max_length=12)),
                        ('queues', models.CharField(blank=True, max_length=200)),
                        ('pool', models.CharField(blank=True, max_length=12)),
                        ('concurrency', models.IntegerField(default=1)),
                        ('model', models.CharField(blank=True, db_default='', max_length=200)),
                        ('calls', models.JSONField(db_default={}, default=dict)),
                        ('started_at', models.DateTimeField()),
                        ('seen_at', models.DateTimeField()),
                    ],
                    options={
                        'verbose_name_plural': 'processes',
                    },
                ),
                migrations.CreateModel(
                    name='Heartbeat',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('slot_at', models.DateTimeField()),
                        ('trigger', models.CharField(choices=[('timer', 'Timer'), ('operator', 'Operator'), ('message', 'Message'), ('chat', 'Chat'), ('event', 'Event'), ('drive', 'Drive'), ('cycle', 'Cycle')], default='timer', max_length=12)),
                        ('number', models.BigIntegerField(default=0)),
                        ('status', models.CharField(choices=[('running', 'Running'), ('waiting', 'Waiting'), ('done', 'Done'), ('failed', 'Failed'), ('skipped', 'Skipped')], max_length=8)),
                        ('mode', models.CharField(blank=True, max_length=20)),
                        ('epoch', models.BigIntegerField()),
                        ('step', models.IntegerField(default=0)),
                        ('checkpoint', apps.tenants.fields.PackedJSON(default=dict)),
                        ('energy_start', models.FloatField(null=True)),
                        ('energy_end', models.FloatField(null=True)),
                        ('situation', apps.tenants.fields.PackedJSON(default=dict)),
                        ('energy_unit', models.CharField(blank=True, db_default='', default='', max_length=20)),
                        ('reasoning', models.TextField(blank=True)),
                        ('actions', apps.heartbeats.models.ActionEntries(default=list)),
                        ('goal_changes', apps.tenants.fields.PackedJSON(default=list)),
                        ('dropped', models.JSONField(default=list)),
                        ('repairs', models.JSONField(default=list)),
                        ('narrative', models.TextField(blank=True)),
                        ('emotional_valence', models.FloatField(null=True)),
                        ('arousal', models.FloatField(null=True)),
                        ('tier', models.CharField(blank=True, db_default='', default='', max_length=12)),
                        ('turns', models.PositiveSmallIntegerField(db_default=0, default=0)),
                        ('reason', models.TextField(blank=True)),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('trace', apps.tenants.fields.PackedList(default=list)),
                        ('own_ms', models.FloatField(default=0.0)),
                        ('elapsed_ms', models.FloatField(db_default=0.0, default=0.0)),
                        ('started_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='heartbeats', to='agents.agent')),
                        ('memory', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-started_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-started_at'], name='heartbeats_by_agent'), models.Index(fields=['tenant', '-started_at'], name='heartbeats_by_time'), models.Index(condition=models.Q(('status__in', ['failed', 'skipped'])), fields=['tenant', 'status', '-started_at'], name='heartbeats_not_done'), models.Index(condition=models.Q(('memory__isnull', False)), fields=['tenant', 'memory'], name='heartbeats_by_memory')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'slot_at'), name='heartbeats_heartbeat_slot'), models.UniqueConstraint(condition=models.Q(('status__in', ['running', 'waiting'])), fields=('tenant', 'agent'), name='heartbeats_heartbeat_one_open')],
                    },
                ),
                migrations.CreateModel(
                    name='SpanExport',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('position', models.CharField(max_length=60)),
                        ('exported_at', models.DateTimeField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant',), name='heartbeats_spanexport_once')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
