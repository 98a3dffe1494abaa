"""The tables of the app `goals`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.goals.intents
import arbor.goals.plans
import arbor.goals.values
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('goals', '0001_squashed'),
        ('goals', '0002_procedures'),
        ('goals', '0003_conditions_met'),
        ('goals', '0004_reference_indexes'),
        ('goals', '0005_action_names'),
        ('goals', '0006_type_and_priority'),
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
                    name='Goal',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('title', models.CharField(max_length=300)),
                        ('description', models.TextField(blank=True)),
                        ('state', models.CharField(choices=[('active', 'active'), ('queued', 'queued'), ('backburner', 'backburner'), ('completed', 'completed'), ('abandoned', 'abandoned')], max_length=16)),
                        ('layer', models.CharField(choices=[('aspiration', 'aspiration'), ('objective', 'objective'), ('task', 'task')], max_length=16)),
                        ('source', models.CharField(choices=[('user_request', 'user_request'), ('curiosity', 'curiosity'), ('identity', 'identity'), ('derived', 'derived'), ('external', 'external'), ('survival', 'survival'), ('role', 'role'), ('opportunity', 'opportunity'), ('social', 'social')], max_length=16)),
                        ('type', models.CharField(choices=[('achieve', 'achieve'), ('maintain', 'maintain'), ('explore', 'explore'), ('learn', 'learn'), ('avoid', 'avoid'), ('collaborate', 'collaborate'), ('improve', 'improve'), ('capability', 'capability')], db_default='achieve', default=arbor.goals.values.GoalType['ACHIEVE'], max_length=16)),
                        ('priority', models.PositiveSmallIntegerField(db_default=50, default=50)),
                        ('fraction', models.FloatField(default=0.0)),
                        ('fraction_by_hand', models.BooleanField(db_default=False, default=False)),
                        ('blocked_by', models.TextField(blank=True)),
                        ('emotional_valence', models.FloatField(db_default=0.0, default=0.0)),
                        ('expected_reward', models.FloatField(blank=True, null=True)),
                        ('effort', models.PositiveIntegerField(db_default=0, default=0)),
                        ('deadline', models.DateTimeField(blank=True, null=True)),
                        ('heartbeat_id', models.UUIDField(blank=True, null=True)),
                        ('rule', models.CharField(blank=True, db_default='', default='', max_length=12)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('touched_at', models.DateTimeField()),
                        ('completed_at', models.DateTimeField(blank=True, null=True)),
                        ('abandoned_at', models.DateTimeField(blank=True, null=True)),
                        ('abandonment_reason', models.TextField(blank=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='goals', to='agents.agent')),
                        ('blocked_by_goal', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='+', to='goals.goal')),
                        ('parent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='children', to='goals.goal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', 'state'], name='goals_goal_backlog'), models.Index(condition=models.Q(('parent__isnull', False)), fields=['tenant', 'parent'], name='goals_goal_by_parent'), models.Index(condition=models.Q(('blocked_by_goal__isnull', False)), fields=['tenant', 'blocked_by_goal'], name='goals_goal_by_blocker')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('fraction__gte', 0), ('fraction__lte', 1)), name='goals_goal_fraction'), models.CheckConstraint(condition=models.Q(('emotional_valence__gte', -1), ('emotional_valence__lte', 1)), name='goals_goal_valence'), models.CheckConstraint(condition=models.Q(('expected_reward__gte', 0), ('expected_reward__lte', 1)), name='goals_goal_reward'), models.CheckConstraint(condition=models.Q(('priority__lte', 100)), name='goals_goal_priority')],
                    },
                ),
                migrations.CreateModel(
                    name='GoalMemoryLink',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('kind', models.CharField(choices=[('origin', 'origin'), ('progress', 'progress'), ('completion', 'completion'), ('blocker', 'blocker')], max_length=10)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('goal', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='links', to='goals.goal')),
                        ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'goal memory',
                        'verbose_name_plural': 'goal memories',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'memory'], name='goals_link_by_memory')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'goal', 'memory', 'kind'), name='goals_link_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Plan',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('status', models.CharField(choices=[('draft', 'draft'), ('active', 'active'), ('completed', 'completed'), ('abandoned', 'abandoned')], default=arbor.goals.plans.PlanStatus['ACTIVE'], max_length=10)),
                        ('dependencies', models.JSONField(default=list)),
                        ('met', models.JSONField(blank=True, db_default=[], default=list)),
                        ('estimated_ticks', models.PositiveIntegerField(null=True)),
                        ('estimated_cost', models.FloatField(null=True)),
                        ('risk', models.FloatField(null=True)),
                        ('reason', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='plans', to='agents.agent')),
                        ('goal', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='plans', to='goals.goal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-created_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', 'status'], name='goals_plan_by_status'), models.Index(fields=['tenant', 'goal', '-created_at'], name='goals_plan_by_goal')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('status', 'active')), fields=('tenant', 'goal'), name='goals_plan_one_active'), models.CheckConstraint(condition=models.Q(('risk__gte', 0), ('risk__lte', 1)), name='goals_plan_risk')],
                    },
                ),
                migrations.CreateModel(
                    name='PlanStep',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('position', models.PositiveSmallIntegerField()),
                        ('action', models.CharField(max_length=80)),
                        ('description', models.TextField()),
                        ('precondition', models.TextField(blank=True)),
                        ('postcondition', models.TextField(blank=True)),
                        ('estimated_ticks', models.PositiveIntegerField(null=True)),
                        ('status', models.CharField(choices=[('waiting', 'waiting'), ('committed', 'committed'), ('completed', 'completed'), ('abandoned', 'abandoned')], default=arbor.goals.plans.StepStatus['WAITING'], max_length=10)),
                        ('procedure_id', models.UUIDField(blank=True, null=True)),
                        ('plan', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='steps', to='goals.plan')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'step',
                        'ordering': ['position'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'plan', 'position'), name='goals_step_position')],
                    },
                ),
                migrations.CreateModel(
                    name='Intent',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('action', models.CharField(max_length=80)),
                        ('description', models.TextField()),
                        ('status', models.CharField(choices=[('pending', 'pending'), ('locked', 'locked'), ('completed', 'completed'), ('failed', 'failed'), ('abandoned', 'abandoned')], default=arbor.goals.intents.IntentStatus['PENDING'], max_length=16)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('last_error', models.TextField(blank=True)),
                        ('locked_by', models.UUIDField(null=True)),
                        ('locked_at', models.DateTimeField(null=True)),
                        ('ticks_used', models.PositiveIntegerField(db_default=0, default=0)),
                        ('tick_limit', models.PositiveIntegerField(null=True)),
                        ('procedure_id', models.UUIDField(blank=True, null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('ended_at', models.DateTimeField(blank=True, null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='intents', to='agents.agent')),
                        ('goal', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='intents', to='goals.goal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('step', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='intents', to='goals.planstep')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', 'status'], name='goals_intent_by_status'), models.Index(fields=['tenant', 'goal'], name='goals_intent_by_goal'), models.Index(condition=models.Q(('step__isnull', False)), fields=['tenant', 'step'], name='goals_intent_by_step')],
                    },
                ),
                migrations.CreateModel(
                    name='ProgressNote',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('text', models.TextField()),
                        ('heartbeat_id', models.UUIDField(null=True)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('goal', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='notes', to='goals.goal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'goal', '-at'], name='goals_note_by_goal')],
                    },
                ),
                migrations.CreateModel(
                    name='Satisfaction',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('outcome', models.CharField(max_length=10)),
                        ('reward_actual', models.FloatField()),
                        ('reward_expected', models.FloatField()),
                        ('reputation_delta', models.FloatField(default=0.0)),
                        ('novelty', models.FloatField()),
                        ('effort', models.PositiveIntegerField()),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('goal', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='satisfactions', to='goals.goal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-at'], name='goals_satisfaction_by_agent'), models.Index(fields=['tenant', 'goal'], name='goals_satisfaction_by_goal')],
                    },
                ),
            ],
        ),
    ]
