"""The tables of the app `agents`, as one migration. A database that had all that it replaces is left as it is."""

import django.db.models.deletion
from django.db import migrations, models

import apps.tenants.fields
import arbor.agents.lifecycle
import arbor.ids

_STORAGE = """
-- The state changes at each heartbeat: room for its versions beside it. It is stored compressed.
ALTER TABLE agents_agentstate SET (fillfactor = 60);
ALTER TABLE agents_agentstate ALTER COLUMN working_memory SET STORAGE EXTERNAL;
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("agents", "0001_initial"),
        ("agents", "0002_storage"),
        ("agents", "0003_mind_at_work"),
        ("agents", "0004_rhythm"),
        ("agents", "0005_words"),
        ("agents", "0006_packed_memory"),
    ]

    dependencies = [
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Agent',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('public_id', models.CharField(editable=False, max_length=70)),
                ('name', models.CharField(max_length=100)),
                ('status', models.CharField(choices=[('created', 'created'), ('active', 'active'), ('paused', 'paused'), ('stopped', 'stopped'), ('dormant', 'dormant')], default=arbor.agents.lifecycle.AgentStatus['CREATED'], max_length=16)),
                ('template_name', models.CharField(max_length=100)),
                ('template_version', models.CharField(max_length=40)),
                ('trust_tier', models.CharField(max_length=16)),
                ('character', models.JSONField()),
                ('genome', models.JSONField(null=True)),
                ('allowed_actions', models.JSONField(default=list)),
                ('pipeline', models.TextField(blank=True)),
                ('model', models.CharField(blank=True, max_length=200)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'name'), name='agents_agent_name'),
                    models.UniqueConstraint(fields=('tenant', 'public_id'), name='agents_agent_public_id'),
                ],
            },
        ),
        migrations.CreateModel(
            name='BuiltinTemplate',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('version', models.CharField(max_length=40)),
                ('description', models.TextField(blank=True)),
                ('source_text', models.TextField()),
                ('spec', models.JSONField()),
                ('content_hash', models.CharField(max_length=64)),
                ('updated_at', models.DateTimeField(auto_now=True)),
            ],
            options={
                'verbose_name': 'built-in template',
                'ordering': ['name'],
                'abstract': False,
                'constraints': [models.UniqueConstraint(fields=('name',), name='agents_builtintemplate_name')],
            },
        ),
        migrations.CreateModel(
            name='Template',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=100)),
                ('version', models.CharField(max_length=40)),
                ('description', models.TextField(blank=True)),
                ('source_text', models.TextField()),
                ('spec', models.JSONField()),
                ('content_hash', models.CharField(max_length=64)),
                ('updated_at', models.DateTimeField(auto_now=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'name'), name='agents_template_name'),
                ],
            },
        ),
        migrations.CreateModel(
            name='AgentKey',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='key', serialize=False, to='agents.agent')),
                ('public_key', models.BinaryField()),
                ('sealed_private_key', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='AgentPolicy',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='policy', serialize=False, to='agents.agent')),
                ('budget', models.CharField(default='energy', max_length=8)),
                ('allowance', models.PositiveIntegerField(blank=True, null=True)),
                ('tier_models', models.JSONField(blank=True, default=dict)),
                ('active_from', models.TimeField(blank=True, null=True)),
                ('active_until', models.TimeField(blank=True, null=True)),
                ('time_zone', models.CharField(default='UTC', max_length=60)),
                ('adaptive', models.BooleanField(default=True)),
                ('daily_beats', models.PositiveIntegerField(blank=True, null=True)),
                ('daily_tokens', models.PositiveBigIntegerField(blank=True, null=True)),
                ('daily_usd', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                ('follow_ups', models.PositiveSmallIntegerField(blank=True, null=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name': 'policy',
                'verbose_name_plural': 'policies',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='AgentState',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='state', serialize=False, to='agents.agent')),
                ('energy', models.FloatField(default=10.0)),
                ('beats', models.BigIntegerField(default=0)),
                ('nops', models.IntegerField(default=0)),
                ('working_memory', apps.tenants.fields.PackedJSON(default=dict)),
                ('drives', models.JSONField(db_default={}, default=dict)),
                ('mood', models.JSONField(db_default={}, default=dict)),
                ('learned', models.JSONField(db_default={}, default=dict)),
                ('bonus_actions', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('ticks_left', models.PositiveIntegerField(db_default=0, default=0)),
                ('idle_beats', models.PositiveIntegerField(db_default=0, default=0)),
                ('stale_beats', models.PositiveIntegerField(db_default=0, default=0)),
                ('notices', models.JSONField(db_default=[], default=list)),
                ('last_beat_at', models.DateTimeField(null=True)),
                ('last_user_contact_at', models.DateTimeField(null=True)),
                ('last_reach_out_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(condition=models.Q(('notices', []), _negated=True), fields=['tenant'], name='agents_state_noticed'),
                ],
                'constraints': [
                    models.CheckConstraint(condition=models.Q(('energy__gte', 0), ('energy__lte', 20)), name='agents_state_energy'),
                ],
            },
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
