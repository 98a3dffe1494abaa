"""The tables of the app `authority`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.authority.approvals
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('authority', '0001_capabilities'),
        ('authority', '0002_approvals'),
        ('authority', '0003_trust_tiers'),
        ('authority', '0004_search_grants'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='AgentTrust',
                    fields=[
                        ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='trust', serialize=False, to='agents.agent')),
                        ('preset', models.CharField(choices=[('cautious', 'cautious'), ('balanced', 'balanced'), ('hands_off', 'hands_off'), ('full_trust', 'full_trust')], max_length=12)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'trust preset',
                        'verbose_name_plural': 'trust presets',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='CapabilityGrant',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('resource', models.CharField(max_length=500)),
                        ('constraints', models.JSONField(null=True)),
                        ('ancestors', models.JSONField(null=True)),
                        ('depth', models.PositiveSmallIntegerField(db_default=3, default=3)),
                        ('issuer', models.CharField(db_default='', default='', max_length=40)),
                        ('signature', models.CharField(db_default='', default='', max_length=128)),
                        ('granted_by', models.CharField(max_length=200)),
                        ('granted_at', models.DateTimeField()),
                        ('revoked_at', models.DateTimeField(null=True)),
                        ('revoked_by', models.CharField(db_default='', default='', max_length=200)),
                        ('revoked_reason', models.CharField(db_default='', default='', max_length=500)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='capabilities', to='agents.agent')),
                        ('parent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='delegates', to='authority.capabilitygrant')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'capability',
                        'verbose_name_plural': 'capabilities',
                        'ordering': ['resource'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('revoked_at__isnull', True)), fields=['tenant', 'agent'], name='authority_grant_in_force'), models.Index(fields=['tenant', 'agent', '-granted_at'], name='authority_grant_by_agent'), models.Index(condition=models.Q(('parent__isnull', False)), fields=['tenant', 'parent'], name='authority_grant_by_parent'), models.Index(condition=models.Q(('signature', '')), fields=['tenant'], name='authority_grant_unsigned')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('depth__lte', 10)), name='authority_grant_depth'), models.CheckConstraint(condition=models.Q(models.Q(('ancestors__isnull', True), ('parent__isnull', True)), models.Q(('ancestors__isnull', False), ('parent__isnull', False)), _connector='OR'), name='authority_grant_ancestors')],
                    },
                ),
                migrations.CreateModel(
                    name='CapabilityUse',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('heartbeat_id', models.UUIDField(null=True)),
                        ('number', models.PositiveIntegerField(default=1)),
                        ('at', models.DateTimeField()),
                        ('capability', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='uses', to='authority.capabilitygrant')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'capability', 'at'], name='authority_use_by_time')],
                    },
                ),
                migrations.CreateModel(
                    name='ModeRule',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('prefix', models.CharField(max_length=500)),
                        ('mode', models.CharField(choices=[('block', 'block'), ('ask', 'ask'), ('allow', 'allow'), ('auto', 'auto')], max_length=5)),
                        ('set_by', models.CharField(max_length=200)),
                        ('set_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='mode_rules', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'trust rule',
                        'verbose_name_plural': 'trust rules',
                        'ordering': ['prefix'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(condition=models.Q(('agent__isnull', False)), fields=('tenant', 'agent', 'prefix'), name='authority_rule_of_agent'), models.UniqueConstraint(condition=models.Q(('agent__isnull', True)), fields=('tenant', 'prefix'), name='authority_rule_of_tenant')],
                    },
                ),
                migrations.CreateModel(
                    name='TierChange',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('before', models.CharField(choices=[('untrusted', 'untrusted'), ('probationary', 'probationary'), ('trusted', 'trusted'), ('veteran', 'veteran'), ('autonomous', 'autonomous')], max_length=16)),
                        ('after', models.CharField(choices=[('untrusted', 'untrusted'), ('probationary', 'probationary'), ('trusted', 'trusted'), ('veteran', 'veteran'), ('autonomous', 'autonomous')], max_length=16)),
                        ('score', models.FloatField(null=True)),
                        ('decided_by', models.CharField(max_length=200)),
                        ('reason', models.TextField()),
                        ('at', models.DateTimeField()),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='tier_changes', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'tier change',
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-at'], name='authority_tier_by_agent')],
                    },
                ),
                migrations.CreateModel(
                    name='TrustScore',
                    fields=[
                        ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='trust_score', serialize=False, to='agents.agent')),
                        ('tier', models.CharField(choices=[('untrusted', 'untrusted'), ('probationary', 'probationary'), ('trusted', 'trusted'), ('veteran', 'veteran'), ('autonomous', 'autonomous')], max_length=16)),
                        ('since', models.DateTimeField()),
                        ('by_person', models.BooleanField(db_default=False, default=False)),
                        ('score', models.FloatField(null=True)),
                        ('parts', models.JSONField(db_default=[], default=list)),
                        ('breached_at', models.DateTimeField(null=True)),
                        ('above_since', models.DateTimeField(null=True)),
                        ('below_since', models.DateTimeField(null=True)),
                        ('computed_at', models.DateTimeField(null=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'trust score',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'computed_at'], name='authority_score_by_time')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('score__isnull', True), models.Q(('score__gte', 0), ('score__lte', 100)), _connector='OR'), name='authority_score_range')],
                    },
                ),
                migrations.CreateModel(
                    name='ActionApproval',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('heartbeat_id', models.UUIDField(null=True)),
                        ('turn', models.PositiveSmallIntegerField(default=1)),
                        ('index', models.PositiveSmallIntegerField(default=0)),
                        ('action', models.CharField(max_length=80)),
                        ('resource', models.CharField(max_length=500)),
                        ('body', models.TextField()),
                        ('body_hash', models.CharField(max_length=64)),
                        ('about', models.CharField(blank=True, max_length=200)),
                        ('reasoning', models.TextField(blank=True)),
                        ('goal_id', models.CharField(max_length=80, null=True)),
                        ('intent_id', models.CharField(max_length=80, null=True)),
                        ('why', models.CharField(max_length=600)),
                        ('status', models.CharField(choices=[('pending', 'pending'), ('approved', 'approved'), ('denied', 'denied'), ('expired', 'expired'), ('executed', 'executed'), ('withdrawn', 'withdrawn')], default=arbor.authority.approvals.ApprovalStatus['PENDING'], max_length=9)),
                        ('asked_at', models.DateTimeField()),
                        ('expires_at', models.DateTimeField()),
                        ('decided_by', models.CharField(blank=True, max_length=200)),
                        ('decided_at', models.DateTimeField(null=True)),
                        ('reason', models.TextField(blank=True)),
                        ('executed_by', models.UUIDField(null=True)),
                        ('executed_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='approvals', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'approval',
                        'ordering': ['-asked_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('status__in', ['pending', 'approved', 'denied'])), fields=['tenant', 'agent', 'expires_at'], name='authority_approval_read'), models.Index(condition=models.Q(('status', 'pending')), fields=['tenant', '-asked_at'], name='authority_approval_pending'), models.Index(fields=['tenant', '-asked_at'], name='authority_approval_by_time'), models.Index(fields=['tenant', 'agent', '-asked_at'], name='authority_approval_by_agent')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('status__in', ['pending', 'approved'])), fields=('tenant', 'agent', 'resource', 'body_hash'), name='authority_approval_once'), models.CheckConstraint(condition=models.Q(models.Q(('executed_by__isnull', False), ('status', 'executed')), models.Q(models.Q(('status', 'executed'), _negated=True), ('executed_by__isnull', True)), _connector='OR'), name='authority_approval_executed')],
                    },
                ),
            ],
        ),
    ]
