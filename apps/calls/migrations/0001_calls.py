"""Model calls, their ledger and daily usage."""

import apps.tenants.fields
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_squashed'),
        ('heartbeats', '0002_calls'),
        ('tenants', '0001_squashed'),
    ]

    # The tables are those of the app `heartbeats`, renamed by its migration 0002.
    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
                migrations.CreateModel(
                    name='ExternalCall',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('heartbeat_id', models.UUIDField(blank=True, null=True)),
                        ('subject', models.JSONField(db_default={}, default=dict)),
                        ('subject_key', models.CharField(blank=True, db_default='', max_length=60)),
                        ('purpose', models.CharField(max_length=12)),
                        ('status', models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('complete', 'Complete'), ('failed', 'Failed'), ('retried', 'Retried')], default='pending', max_length=8)),
                        ('model', models.CharField(max_length=200)),
                        ('request', apps.tenants.fields.PackedJSON()),
                        ('sections', apps.tenants.fields.PackedJSON(default=list)),
                        ('reply', models.TextField(blank=True)),
                        ('error', models.TextField(blank=True)),
                        ('error_kind', models.CharField(blank=True, max_length=40)),
                        ('dropped', models.JSONField(db_default=[], default=list)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('failures', models.PositiveSmallIntegerField(db_default=0)),
                        ('due_at', models.DateTimeField(null=True)),
                        ('lease_until', models.DateTimeField(null=True)),
                        ('requested_at', models.DateTimeField()),
                        ('started_at', models.DateTimeField(null=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('errand_status', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='status')), output_field=models.CharField(max_length=8, null=True))),
                        ('errand_lease', apps.tenants.fields.StoredField(expression=models.Case(models.When(models.Q(('subject_key', ''), _negated=True), then='lease_until')), output_field=models.DateTimeField(null=True))),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'model call',
                        'ordering': ['requested_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
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
                        ('call', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='calls.externalcall')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name_plural': 'ledger entries',
                        'abstract': False,
                        'base_manager_name': 'objects',
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
                migrations.AddIndex(
                    model_name='externalcall',
                    index=models.Index(fields=['tenant', 'heartbeat_id', 'requested_at'], name='calls_by_heartbeat'),
                ),
                migrations.AddIndex(
                    model_name='externalcall',
                    index=models.Index(condition=models.Q(('errand_status__in', ['pending', 'running', 'failed'])), fields=['tenant', 'agent', 'purpose'], name='calls_maintenance_unfinished'),
                ),
                migrations.AddIndex(
                    model_name='externalcall',
                    index=models.Index(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=['tenant', 'errand_lease'], name='calls_maintenance_lease'),
                ),
                migrations.AddIndex(
                    model_name='externalcall',
                    index=models.Index(condition=models.Q(('errand_status', 'complete'), models.Q(('request', {}), _negated=True)), fields=['tenant', 'requested_at'], name='calls_maintenance_prompts'),
                ),
                migrations.AddConstraint(
                    model_name='externalcall',
                    constraint=models.UniqueConstraint(condition=models.Q(('errand_status__in', ['pending', 'running'])), fields=('tenant', 'agent', 'purpose', 'subject_key'), name='calls_maintenance_one_open'),
                ),
                migrations.AddConstraint(
                    model_name='externalcall',
                    constraint=models.CheckConstraint(condition=models.Q(('heartbeat_id__isnull', True), ('subject_key', ''), _connector='XOR'), name='calls_of_heartbeat_or_maintenance'),
                ),
                migrations.AddIndex(
                    model_name='ledgerentry',
                    index=models.Index(fields=['tenant', '-at'], name='calls_ledger_by_time'),
                ),
            ]
        )
    ]
