"""The tables of the app `selves`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import arbor.selves.proposals
import arbor.selves.values
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('selves', '0001_squashed'),
        ('selves', '0002_peers_by_id'),
        ('selves', '0003_complete_records'),
        ('selves', '0004_memory_filters'),
        ('selves', '0005_reference_indexes'),
        ('selves', '0006_action_names'),
        ('selves', '0007_self_history'),
        ('selves', '0008_calibrations'),
        ('selves', '0009_evidence_time'),
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
                    name='Belief',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('category', models.CharField(choices=[('self', 'self'), ('others', 'others'), ('world', 'world'), ('time', 'time'), ('causality', 'causality')], max_length=16)),
                        ('statement', models.TextField()),
                        ('statement_hash', models.BinaryField(max_length=32)),
                        ('confidence', models.FloatField()),
                        ('stability', models.FloatField()),
                        ('status', models.CharField(choices=[('held', 'held'), ('questioned', 'questioned'), ('dropped', 'dropped')], default=arbor.selves.values.BeliefStatus['HELD'], max_length=10)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('tested_at', models.DateTimeField(null=True)),
                        ('filters', models.JSONField(blank=True, db_default=[], default=list)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='beliefs', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'statement_hash'), name='selves_belief_once'), models.CheckConstraint(condition=models.Q(('confidence__gte', 0), ('confidence__lte', 1)), name='selves_belief_confidence'), models.CheckConstraint(condition=models.Q(('stability__gte', 0), ('stability__lte', 1)), name='selves_belief_stability')],
                    },
                ),
                migrations.CreateModel(
                    name='BeliefEvidence',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('supports', models.BooleanField()),
                        ('strength', models.FloatField(default=1.0)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('belief', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='evidence', to='selves.belief')),
                        ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'evidence',
                        'verbose_name_plural': 'evidence',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'memory'], name='selves_evidence_by_memory')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'belief', 'memory'), name='selves_evidence_once'), models.CheckConstraint(condition=models.Q(('strength__gte', 0), ('strength__lte', 1)), name='selves_evidence_strength')],
                    },
                ),
                migrations.CreateModel(
                    name='Boundary',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=60)),
                        ('description', models.TextField(blank=True)),
                        ('type', models.CharField(choices=[('ethical', 'ethical'), ('identity', 'identity'), ('resource', 'resource')], max_length=10)),
                        ('patterns', models.JSONField(default=list)),
                        ('examples', models.JSONField(default=list)),
                        ('vectors', models.JSONField(default=dict)),
                        ('response', models.CharField(choices=[('refuse', 'refuse'), ('negotiate', 'negotiate'), ('flag', 'flag')], max_length=10)),
                        ('flexibility', models.FloatField(default=0.0)),
                        ('importance', models.FloatField(default=0.5)),
                        ('enabled', models.BooleanField(default=True)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='boundaries', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name_plural': 'boundaries',
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'name'), name='selves_boundary_name'), models.CheckConstraint(condition=models.Q(('flexibility__gte', 0), ('flexibility__lte', 1)), name='selves_boundary_flexibility'), models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='selves_boundary_importance')],
                    },
                ),
                migrations.CreateModel(
                    name='Experience',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('heartbeat_id', models.UUIDField()),
                        ('tick', models.BigIntegerField()),
                        ('action', models.CharField(max_length=80)),
                        ('about', models.TextField(blank=True)),
                        ('outcome', models.CharField(max_length=10)),
                        ('lesson', models.TextField(blank=True)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='experiences', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-tick'], name='selves_experience_by_tick')],
                    },
                ),
                migrations.CreateModel(
                    name='IdentityAspect',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('kind', models.CharField(choices=[('self_concept', 'self_concept'), ('agency', 'agency'), ('purpose', 'purpose'), ('value', 'value'), ('emotional_baseline', 'emotional_baseline'), ('threat_sensitivity', 'threat_sensitivity'), ('change_resistance', 'change_resistance'), ('trait', 'trait'), ('capability', 'capability')], max_length=24)),
                        ('content', models.TextField()),
                        ('content_hash', models.BinaryField(max_length=32)),
                        ('strength', models.FloatField(db_default=0.5, default=0.5)),
                        ('stability', models.FloatField()),
                        ('status', models.CharField(choices=[('held', 'held'), ('questioned', 'questioned'), ('dropped', 'dropped')], default=arbor.selves.values.BeliefStatus['HELD'], max_length=10)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='aspects', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'aspect',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'kind', 'content_hash'), name='selves_identityaspect_once'), models.CheckConstraint(condition=models.Q(('stability__gte', 0), ('stability__lte', 1)), name='selves_identityaspect_stability'), models.CheckConstraint(condition=models.Q(('strength__gte', 0), ('strength__lte', 1)), name='selves_identityaspect_strength')],
                    },
                ),
                migrations.CreateModel(
                    name='PeerModel',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('is_agent', models.BooleanField(db_default=False, default=False)),
                        ('name', models.CharField(max_length=200)),
                        ('competence', models.FloatField(default=0.5)),
                        ('reliability', models.FloatField(default=0.5)),
                        ('interests', models.JSONField(default=list)),
                        ('interactions', models.PositiveIntegerField(default=0)),
                        ('successes', models.PositiveIntegerField(default=0)),
                        ('last_tick', models.BigIntegerField(default=0)),
                        ('last_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='peers', to='agents.agent')),
                        ('peer', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'peer',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='selves_peer_by_agent'), models.Index(condition=models.Q(('peer__isnull', False)), fields=['tenant', 'peer'], name='selves_peer_by_peer')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('is_agent', False)), fields=('tenant', 'agent', 'name'), name='selves_peer_person'), models.UniqueConstraint(condition=models.Q(('peer__isnull', False)), fields=('tenant', 'agent', 'peer'), name='selves_peer_agent'), models.CheckConstraint(condition=models.Q(('successes__lte', models.F('interactions'))), name='selves_peer_successes')],
                    },
                ),
                migrations.CreateModel(
                    name='Preference',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('key', models.CharField(max_length=60)),
                        ('value', models.CharField(max_length=300)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='preferences', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['key'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'key'), name='selves_preference_key')],
                    },
                ),
                migrations.CreateModel(
                    name='Proposal',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('kind', models.CharField(choices=[('fact', 'fact'), ('insight', 'insight'), ('learning', 'learning'), ('pattern', 'pattern'), ('preconscious', 'preconscious'), ('identity', 'identity'), ('belief', 'belief'), ('preference', 'preference')], max_length=12)),
                        ('content', models.TextField()),
                        ('change', models.JSONField(default=dict)),
                        ('confidence', models.FloatField()),
                        ('evidence', models.JSONField(default=list)),
                        ('source', models.CharField(max_length=200)),
                        ('status', models.CharField(choices=[('pending', 'pending'), ('accepted', 'accepted'), ('rejected', 'rejected'), ('expired', 'expired')], default=arbor.selves.proposals.ProposalStatus['PENDING'], max_length=8)),
                        ('deferrals', models.PositiveSmallIntegerField(default=0)),
                        ('reason', models.TextField(blank=True)),
                        ('decided_by', models.CharField(blank=True, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('decided_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='proposals', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-created_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('status', 'pending')), fields=['tenant', 'agent'], name='selves_proposal_pending'), models.Index(fields=['tenant', 'agent', '-created_at'], name='selves_proposal_by_agent')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('confidence__gte', 0), ('confidence__lte', 1)), name='selves_proposal_confidence')],
                    },
                ),
                migrations.CreateModel(
                    name='ProposalCalibration',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('kind', models.CharField(choices=[('fact', 'fact'), ('insight', 'insight'), ('learning', 'learning'), ('pattern', 'pattern'), ('preconscious', 'preconscious'), ('identity', 'identity'), ('belief', 'belief'), ('preference', 'preference')], max_length=12)),
                        ('right', models.PositiveSmallIntegerField(default=0)),
                        ('wrong', models.PositiveSmallIntegerField(default=0)),
                        ('refused', models.PositiveSmallIntegerField(default=0)),
                        ('threshold', models.FloatField(null=True)),
                        ('computed_at', models.DateTimeField()),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='calibrations', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'calibration',
                        'db_table': 'selves_calibration',
                        'ordering': ['kind'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'kind'), name='selves_calibration_once'), models.CheckConstraint(condition=models.Q(('threshold__isnull', True), models.Q(('threshold__gte', 0), ('threshold__lte', 1)), _connector='OR'), name='selves_calibration_threshold')],
                    },
                ),
                migrations.CreateModel(
                    name='SelfChange',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('version', models.PositiveIntegerField()),
                        ('what', models.CharField(max_length=16)),
                        ('target_id', models.UUIDField()),
                        ('before', models.JSONField(default=dict)),
                        ('after', models.JSONField(default=dict)),
                        ('decided_by', models.CharField(max_length=200)),
                        ('reason', models.TextField(db_default='', default='')),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('proposal', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='selves.proposal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'self change',
                        'verbose_name_plural': 'self history',
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-at'], name='selves_change_by_agent'), models.Index(condition=models.Q(('proposal__isnull', False)), fields=['tenant', 'proposal'], name='selves_change_by_proposal')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'version', 'what', 'target_id'), name='selves_change_once')],
                    },
                ),
            ],
        ),
    ]
