"""The tables of the app `heartbeats`, as one migration. A database that had all that it replaces is left as it is."""

import django.db.models.deletion
from django.db import migrations, models

import apps.tenants.fields
import arbor.ids

_STORAGE = """
-- The due time is indexed, so no update of it is HOT: vacuum by count, not by share of a large table.
ALTER TABLE heartbeats_heartbeatschedule
    SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
ALTER TABLE heartbeats_heartbeat SET (fillfactor = 70);
-- A call grows by its reply.
ALTER TABLE heartbeats_externalcall SET (fillfactor = 40);
-- Packed values are compressed before they come here, so PostgreSQL need not try.
ALTER TABLE heartbeats_heartbeat
    ALTER COLUMN checkpoint SET STORAGE EXTERNAL,
    ALTER COLUMN situation SET STORAGE EXTERNAL,
    ALTER COLUMN trace SET STORAGE EXTERNAL;
ALTER TABLE heartbeats_externalcall
    ALTER COLUMN request SET STORAGE EXTERNAL,
    ALTER COLUMN sections SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("heartbeats", "0001_initial"),
        ("heartbeats", "0002_storage"),
        ("heartbeats", "0003_errands"),
        ("heartbeats", "0004_errand_retried"),
        ("heartbeats", "0005_errand_records"),
        ("heartbeats", "0006_mind_at_work"),
        ("heartbeats", "0007_rhythm"),
        ("heartbeats", "0008_trace"),
        ("heartbeats", "0009_words"),
        ("heartbeats", "0010_packed"),
        ("heartbeats", "0011_diet"),
        ("heartbeats", "0012_elapsed"),
        ("heartbeats", "0013_labels"),
    ]

    dependencies = [
        ('agents', '0001_squashed'),
        ('memories', '0001_squashed'),
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Process',
            fields=[
                ('name', models.CharField(max_length=200, primary_key=True, serialize=False)),
                ('kind', models.CharField(max_length=12)),
                ('queues', models.CharField(blank=True, max_length=200)),
                ('pool', models.CharField(blank=True, max_length=12)),
                ('concurrency', models.IntegerField(default=1)),
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
                ('actions', models.JSONField(default=list)),
                ('goal_changes', models.JSONField(default=list)),
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
                'indexes': [
                    models.Index(fields=['tenant', 'agent', '-started_at'], name='heartbeats_by_agent'),
                    models.Index(fields=['tenant', '-started_at'], name='heartbeats_by_time'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'agent', 'slot_at'), name='heartbeats_heartbeat_slot'),
                    models.UniqueConstraint(condition=models.Q(('status__in', ['running', 'waiting'])), fields=('tenant', 'agent'), name='heartbeats_heartbeat_one_open'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ExternalCall',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                ('heartbeat', apps.tenants.fields.TenantForeignKey(blank=True, deleting='CASCADE', null=True, related_name='calls', to='heartbeats.heartbeat')),
                ('requested_at', models.DateTimeField()),
                ('purpose', models.CharField(max_length=12)),
                ('model', models.CharField(max_length=200)),
                ('subject', models.JSONField(db_default={}, default=dict)),
                ('subject_key', models.CharField(blank=True, db_default='', max_length=60)),
                ('request', apps.tenants.fields.PackedJSON()),
                ('sections', apps.tenants.fields.PackedJSON(default=list)),
                # Columns that change come last, together: an update logs what is between the first and the last of them.
                ('due_at', models.DateTimeField(null=True)),
                ('lease_until', models.DateTimeField(null=True)),
                ('started_at', models.DateTimeField(null=True)),
                ('ended_at', models.DateTimeField(null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('failures', models.PositiveSmallIntegerField(db_default=0)),
                ('status', models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('complete', 'Complete'), ('failed', 'Failed'), ('retried', 'Retried')], default='pending', max_length=8)),
                ('error_kind', models.CharField(blank=True, max_length=40)),
                ('error', models.TextField(blank=True)),
                ('dropped', models.JSONField(db_default=[], default=list)),
                ('reply', models.TextField(blank=True)),
                ('errand_status', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='status')), output_field=models.CharField(max_length=8, null=True))),
                ('errand_lease', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='lease_until')), output_field=models.DateTimeField(null=True))),
            ],
            options={
                'verbose_name': 'model call',
                'ordering': ['requested_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(fields=['tenant', 'heartbeat', 'requested_at'], name='heartbeats_call_by_beat'),
                    models.Index(condition=models.Q(('errand_status__in', ['pending', 'running', 'failed'])), fields=['tenant', 'agent', 'purpose'], name='heartbeats_errand_unfinished'),
                    models.Index(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=['tenant', 'errand_lease'], name='heartbeats_errand_lease'),
                    models.Index(condition=models.Q(('errand_status', 'complete'), models.Q(('request', {}), _negated=True)), fields=['tenant', 'requested_at'], name='heartbeats_errand_prompts'),
                ],
                'constraints': [
                    models.UniqueConstraint(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=('tenant', 'agent', 'purpose', 'subject_key'), name='heartbeats_errand_one_open'),
                    models.CheckConstraint(condition=models.Q(('heartbeat__isnull', True), ('subject_key', ''), _connector='XOR'), name='heartbeats_call_of_beat_or_errand'),
                ],
            },
        ),
        migrations.CreateModel(
            name='HeartbeatSchedule',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='schedule', serialize=False, to='agents.agent')),
                ('state', models.CharField(choices=[('idle', 'Idle'), ('queued', 'Queued'), ('running', 'Running'), ('off', 'Off')], default='off', max_length=8)),
                ('next_due_at', models.DateTimeField()),
                ('interval_s', models.FloatField()),
                ('slot_at', models.DateTimeField(null=True)),
                ('next_trigger', models.CharField(choices=[('timer', 'Timer'), ('operator', 'Operator'), ('message', 'Message'), ('chat', 'Chat'), ('event', 'Event'), ('drive', 'Drive'), ('cycle', 'Cycle')], db_default='timer', default='timer', max_length=12)),
                ('paused_until', models.DateTimeField(null=True)),
                ('trigger', models.CharField(choices=[('timer', 'Timer'), ('operator', 'Operator'), ('message', 'Message'), ('chat', 'Chat'), ('event', 'Event'), ('drive', 'Drive'), ('cycle', 'Cycle')], default='timer', max_length=12)),
                ('epoch', models.BigIntegerField(default=0)),
                ('lease_until', models.DateTimeField(null=True)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('last_error', models.TextField(blank=True)),
                ('in_flight', apps.tenants.fields.StoredField(expression=models.Case(models.When(state__in=['queued', 'running'], then=models.Value(True)), models.When(state='idle', then=models.Value(False))), output_field=models.BooleanField(null=True))),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(condition=models.Q(('in_flight', False)), fields=['next_due_at'], name='heartbeats_due'),
                    models.Index(condition=models.Q(('in_flight', False)), fields=['tenant', 'next_due_at'], name='heartbeats_due_tenant'),
                    models.Index(condition=models.Q(('in_flight', True)), fields=['tenant', 'agent'], name='heartbeats_in_flight'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('interval_s__gt', 0)), name='heartbeats_interval'),
                ],
            },
        ),
        migrations.CreateModel(
            name='LedgerEntry',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('purpose', models.CharField(max_length=12)),
                ('provider', models.CharField(max_length=60)),
                ('model', models.CharField(max_length=200)),
                ('input_tokens', models.IntegerField()),
                ('output_tokens', models.IntegerField()),
                ('cached_tokens', models.IntegerField(default=0)),
                ('cost_usd', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                ('latency_ms', models.FloatField()),
                ('tries', models.PositiveSmallIntegerField(default=1)),
                ('error_kind', models.CharField(blank=True, max_length=40)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                ('call', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='heartbeats.externalcall')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name_plural': 'ledger entries',
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(fields=['tenant', '-at'], name='heartbeats_ledger_by_time'),
                ],
            },
        ),
        migrations.CreateModel(
            name='Percept',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('kind', models.CharField(choices=[('user_message', 'User Message'), ('peer_message', 'Peer Message'), ('action_result', 'Action Result'), ('environment', 'Environment'), ('error', 'Error'), ('timeout', 'Timeout'), ('interrupt', 'Interrupt')], max_length=16)),
                ('content', models.TextField()),
                ('detail', models.JSONField(db_default={}, default=dict)),
                ('urgent', models.BooleanField(db_default=False, default=False)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='percepts', to='agents.agent')),
                ('heartbeat', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='heartbeats.heartbeat')),
                ('peer', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(condition=models.Q(('heartbeat__isnull', True)), fields=['tenant', 'agent', 'at'], name='heartbeats_percept_waiting'),
                ],
            },
        ),
        migrations.CreateModel(
            name='DailyUsage',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('day', models.DateField()),
                ('beats', models.PositiveIntegerField(db_default=0, default=0)),
                ('calls', models.PositiveIntegerField(db_default=0, default=0)),
                ('tokens', models.PositiveBigIntegerField(db_default=0, default=0)),
                ('cost_usd', models.DecimalField(db_default=0, decimal_places=8, default=0, max_digits=14)),
                ('level', models.CharField(db_default='normal', default='normal', max_length=12)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name': 'daily usage',
                'verbose_name_plural': 'daily usage',
                'ordering': ['-day'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', 'day'], name='heartbeats_usage_by_day'), models.Index(condition=models.Q(('level', 'normal'), _negated=True), fields=['tenant', 'day'], name='heartbeats_usage_low')],
                'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'day'), name='heartbeats_usage_once')],
            },
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
