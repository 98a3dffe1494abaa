"""The tables of the app `calls`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


_STORAGE = """
-- A call grows by its reply; its packed values stay in the row.
ALTER TABLE calls_externalcall SET (fillfactor = 40, toast_tuple_target = 5000);
-- Packed values are compressed before they come here, so PostgreSQL need not try.
ALTER TABLE calls_externalcall
    ALTER COLUMN request SET STORAGE EXTERNAL,
    ALTER COLUMN sections SET STORAGE EXTERNAL,
    ALTER COLUMN reply SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('calls', '0001_calls'),
        ('calls', '0002_deletion_by_age'),
        ('calls', '0003_token_ratios'),
        ('calls', '0004_provider_keys'),
        ('calls', '0005_lists_by_agent'),
        ('calls', '0006_inline_requests'),
        ('calls', '0007_packed_reply'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='ExternalCall',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('heartbeat_id', models.UUIDField(blank=True, null=True)),
                        ('requested_at', models.DateTimeField()),
                        ('purpose', models.CharField(max_length=12)),
                        ('model', models.CharField(max_length=200)),
                        ('subject', models.JSONField(db_default={}, default=dict)),
                        ('subject_key', models.CharField(blank=True, db_default='', max_length=60)),
                        ('request', apps.tenants.fields.PackedJSON()),
                        ('sections', apps.tenants.fields.PackedJSON(default=list)),
                        # Columns that change stand side by side, after the others: an update logs all columns between the first and the last of them.
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
                        ('reply', apps.tenants.fields.PackedJSON(default='')),
                        ('errand_status', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='status')), output_field=models.CharField(max_length=8, null=True))),
                        ('errand_lease', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='lease_until')), output_field=models.DateTimeField(null=True))),
                    ],
                    options={
                        'verbose_name': 'model call',
                        'ordering': ['requested_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'heartbeat_id', 'requested_at'], name='calls_by_heartbeat'), models.Index(fields=['tenant', 'agent', 'id'], name='calls_by_agent'), models.Index(condition=models.Q(('error_kind', ''), _negated=True), fields=['tenant', 'id'], name='calls_failed'), models.Index(condition=models.Q(('errand_status__in', ['pending', 'running', 'failed'])), fields=['tenant', 'agent', 'purpose'], name='calls_maintenance_unfinished'), models.Index(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=['tenant', 'errand_lease'], name='calls_maintenance_lease'), models.Index(condition=models.Q(('errand_status', 'complete'), models.Q(('request', {}), _negated=True)), fields=['tenant', 'requested_at'], name='calls_maintenance_prompts'), models.Index(condition=models.Q(('subject_key', ''), _negated=True), fields=['tenant', 'requested_at'], name='calls_maintenance_by_time')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=('tenant', 'agent', 'purpose', 'subject_key'), name='calls_maintenance_one_open'), models.CheckConstraint(condition=models.Q(('heartbeat_id__isnull', True), ('subject_key', ''), _connector='XOR'), name='calls_of_heartbeat_or_maintenance')],
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
                        ('estimated_tokens', models.IntegerField(db_default=0, default=0)),
                        ('output_tokens', models.IntegerField()),
                        ('cached_tokens', models.IntegerField(default=0)),
                        ('cost_usd', models.DecimalField(decimal_places=8, max_digits=14, null=True)),
                        ('latency_ms', models.FloatField()),
                        ('tries', models.PositiveSmallIntegerField(default=1)),
                        ('error_kind', models.CharField(blank=True, max_length=40)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('call', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='calls.externalcall')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name_plural': 'ledger entries',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', '-at'], name='calls_ledger_by_time'), models.Index(fields=['tenant', 'agent', '-at'], name='calls_ledger_by_agent'), models.Index(fields=['tenant', 'call'], name='calls_ledger_by_call')],
                    },
                ),
                migrations.CreateModel(
                    name='ProviderKey',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('provider', models.CharField(max_length=12)),
                        ('base_url', models.CharField(blank=True, max_length=500)),
                        ('sealed_key', models.JSONField(default=dict)),
                        ('key_end', models.CharField(blank=True, max_length=4)),
                        ('listed', models.JSONField(default=list)),
                        ('checked_at', models.DateTimeField()),
                        ('entered_by', models.CharField(max_length=200)),
                        ('entered_at', models.DateTimeField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'key of a provider',
                        'verbose_name_plural': 'keys of providers',
                        'ordering': ['provider'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'provider'), name='calls_provider_key_once')],
                    },
                ),
                migrations.CreateModel(
                    name='TokenRatio',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('model', models.CharField(max_length=200)),
                        ('ratio', models.FloatField()),
                        ('calls', models.PositiveIntegerField()),
                        ('learnt_at', models.DateTimeField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'model'), name='calls_token_ratio_once')],
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
                        'indexes': [models.Index(fields=['tenant', 'day'], name='calls_usage_by_day'), models.Index(condition=models.Q(('level', 'normal'), _negated=True), fields=['tenant', 'day'], name='calls_usage_low')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'day'), name='calls_usage_once')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
