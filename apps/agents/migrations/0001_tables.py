"""The tables of the app `agents`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.agents.endorsement
import arbor.agents.keys
import arbor.agents.lifecycle
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


_STORAGE = """
-- The state changes at each heartbeat: room for its versions beside it. Its columns are compressed before they come here.
ALTER TABLE agents_agentstate SET (fillfactor = 60);
ALTER TABLE agents_agentstate
    ALTER COLUMN working_memory SET STORAGE EXTERNAL,
    ALTER COLUMN drives SET STORAGE EXTERNAL,
    ALTER COLUMN mood SET STORAGE EXTERNAL,
    ALTER COLUMN learned SET STORAGE EXTERNAL;
-- The due time is indexed, so no update of it is HOT: vacuum by count, not by share of a large table.
ALTER TABLE heartbeats_heartbeatschedule
    SET (fillfactor = 50, autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 2000);
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('agents', '0001_squashed'),
        ('agents', '0002_schedules_moved'),
        ('agents', '0004_energy_policy'),
        ('agents', '0005_published'),
        ('agents', '0006_webhook_percepts'),
        ('agents', '0007_percepts_by_agent'),
        ('agents', '0008_identities'),
        ('agents', '0009_sealed_messages'),
        ('agents', '0010_allowed_actions'),
        ('agents', '0011_voices'),
        ('agents', '0012_packed_state'),
    ]

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
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
                        ('pipeline', models.TextField(blank=True)),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('published', models.BooleanField(db_default=False, default=False)),
                        ('public_description', models.CharField(blank=True, db_default='', default='', max_length=500)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='agents_agent_name'), models.UniqueConstraint(fields=('tenant', 'public_id'), name='agents_agent_public_id')],
                    },
                ),
                migrations.CreateModel(
                    name='AuthorityKey',
                    fields=[
                        ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                        ('public_key', models.BinaryField()),
                        ('sealed_private_key', models.JSONField()),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'ordering': ['number'],
                    },
                ),
                migrations.CreateModel(
                    name='AgentKey',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveSmallIntegerField(db_default=1, default=1)),
                        ('purpose', models.CharField(choices=[('signing', 'signing'), ('exchange', 'exchange')], db_default='signing', default=arbor.agents.keys.KeyPurpose['SIGNING'], max_length=8)),
                        ('public_key', models.BinaryField()),
                        ('sealed_private_key', models.JSONField(default=dict)),
                        ('previous_signature', models.BinaryField(default=b'')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='keys', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'purpose', 'number'), name='agents_key_of_agent')],
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
                    name='Percept',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('kind', models.CharField(choices=[('user_message', 'User Message'), ('peer_message', 'Peer Message'), ('action_result', 'Action Result'), ('environment', 'Environment'), ('webhook', 'Webhook'), ('error', 'Error'), ('timeout', 'Timeout'), ('interrupt', 'Interrupt')], max_length=16)),
                        ('content', models.TextField()),
                        ('sealed', models.JSONField(null=True)),
                        ('detail', models.JSONField(db_default={}, default=dict)),
                        ('urgent', models.BooleanField(db_default=False, default=False)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='percepts', to='agents.agent')),
                        ('peer', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'db_table': 'heartbeats_percept',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-at'], name='heartbeats_percept_of_agent'), models.Index(condition=models.Q(('peer__isnull', False)), fields=['tenant', 'peer'], name='heartbeats_percept_of_peer')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('sealed__isnull', True), ('content', ''), _connector='OR'), name='heartbeats_percept_sealed')],
                    },
                ),
                migrations.CreateModel(
                    name='RequestedCapability',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('resource', models.CharField(max_length=500)),
                        ('description', models.TextField(blank=True, default='')),
                        ('constraints', models.JSONField(default=dict)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='requested_capabilities', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'requested capability',
                        'verbose_name_plural': 'requested capabilities',
                        'ordering': ['resource', 'id'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='agents_requested_of_agent')],
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
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='agents_template_name')],
                    },
                ),
                migrations.CreateModel(
                    name='AgentEndorsement',
                    fields=[
                        ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='endorsement', serialize=False, to='agents.agent')),
                        ('status', models.CharField(choices=[('active', 'active'), ('suspended', 'suspended'), ('revoked', 'revoked')], default=arbor.agents.endorsement.EndorsementStatus['ACTIVE'], max_length=12)),
                        ('serial', models.PositiveIntegerField(default=1)),
                        ('at', models.DateTimeField()),
                        ('reason', models.CharField(blank=True, default='', max_length=500)),
                        ('authority_number', models.PositiveSmallIntegerField()),
                        ('signature', models.BinaryField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'endorsement',
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
                        ('energy', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('tier_models', models.JSONField(blank=True, default=dict)),
                        ('active_from', models.TimeField(blank=True, null=True)),
                        ('active_until', models.TimeField(blank=True, null=True)),
                        ('time_zone', models.CharField(default='UTC', max_length=60)),
                        ('adaptive', models.BooleanField(default=True)),
                        ('daily_beats', models.PositiveIntegerField(blank=True, null=True)),
                        ('daily_tokens', models.PositiveBigIntegerField(blank=True, null=True)),
                        ('daily_usd', models.DecimalField(blank=True, decimal_places=4, max_digits=12, null=True)),
                        ('follow_ups', models.PositiveSmallIntegerField(blank=True, null=True)),
                        ('voices', models.PositiveSmallIntegerField(db_default=0, default=0)),
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
                        ('drives', apps.tenants.fields.PackedJSON(default=dict)),
                        ('mood', apps.tenants.fields.PackedJSON(default=dict)),
                        ('learned', apps.tenants.fields.PackedJSON(default=dict)),
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
                        'indexes': [models.Index(condition=models.Q(('notices', []), _negated=True), fields=['tenant'], name='agents_state_noticed')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('energy__gte', 0), ('energy__lte', 1000)), name='agents_state_energy')],
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
                        'db_table': 'heartbeats_heartbeatschedule',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('in_flight', False)), fields=['next_due_at'], name='heartbeats_due'), models.Index(condition=models.Q(('in_flight', False)), fields=['tenant', 'next_due_at'], name='heartbeats_due_tenant'), models.Index(condition=models.Q(('in_flight', True)), fields=['tenant', 'agent'], name='heartbeats_in_flight')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('interval_s__gt', 0)), name='heartbeats_interval')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
