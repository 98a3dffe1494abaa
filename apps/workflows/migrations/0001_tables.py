"""The tables of the app `workflows`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import arbor.workflows.values
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('workflows', '0001_workflows'),
        ('workflows', '0002_delegated_steps'),
        ('workflows', '0003_keys_of_starters'),
        ('workflows', '0004_failed_legs'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='Workflow',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=60)),
                        ('description', models.CharField(blank=True, max_length=500)),
                        ('version', models.PositiveIntegerField(default=1)),
                        ('enabled', models.BooleanField(db_default=True, default=True)),
                        ('cron', models.CharField(blank=True, db_default='', default='', max_length=100)),
                        ('zone', models.CharField(db_default='UTC', default='UTC', max_length=60)),
                        ('scheduled_input', models.JSONField(blank=True, db_default={}, default=dict)),
                        ('next_run_at', models.DateTimeField(blank=True, null=True)),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('next_run_at__isnull', False)), fields=['tenant', 'next_run_at'], name='workflows_due'), models.Index(condition=models.Q(('agent__isnull', False)), fields=['tenant', 'agent'], name='workflows_by_agent')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='workflows_name_once'), models.CheckConstraint(condition=models.Q(('next_run_at__isnull', True), models.Q(('enabled', True), models.Q(('cron', ''), _negated=True)), _connector='OR'), name='workflows_due_by_schedule')],
                    },
                ),
                migrations.CreateModel(
                    name='WorkflowRun',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('status', models.CharField(choices=[('running', 'running'), ('waiting', 'waiting'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('canceled', 'canceled')], default=arbor.workflows.values.WorkflowRunStatus['RUNNING'], max_length=9)),
                        ('trigger', models.CharField(choices=[('person', 'person'), ('schedule', 'schedule'), ('agent', 'agent')], max_length=8)),
                        ('started_by', models.CharField(max_length=200)),
                        ('agent_id', models.UUIDField(null=True)),
                        ('key', models.CharField(blank=True, default='', max_length=200)),
                        ('input', models.JSONField(default=dict)),
                        ('position', models.JSONField(default=dict)),
                        ('leg', models.PositiveIntegerField(default=0)),
                        ('failed_legs', models.PositiveSmallIntegerField(db_default=0, default=0)),
                        ('due_at', models.DateTimeField(null=True)),
                        ('exit', models.CharField(blank=True, max_length=60)),
                        ('error', models.TextField(blank=True)),
                        ('started_at', models.DateTimeField(auto_now_add=True)),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('workflow', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='runs', to='workflows.workflow')),
                        ('version', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='runs', to='workflows.workflowversion')),
                    ],
                    options={
                        'verbose_name': 'workflow run',
                        'ordering': ['-started_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', '-started_at'], name='workflows_run_by_time'), models.Index(fields=['tenant', 'workflow', '-started_at'], name='workflows_run_by_workflow'), models.Index(fields=['tenant', 'version'], name='workflows_run_by_version'), models.Index(condition=models.Q(('agent_id__isnull', False)), fields=['tenant', 'agent_id'], name='workflows_run_by_agent'), models.Index(condition=models.Q(('due_at__isnull', False)), fields=['tenant', 'due_at'], name='workflows_run_due')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('key', ''), _negated=True), fields=('tenant', 'workflow', 'trigger', 'started_by', 'key'), name='workflows_run_once'), models.CheckConstraint(condition=models.Q(models.Q(('ended_at__isnull', True), ('status__in', ['running', 'waiting'])), models.Q(('due_at__isnull', True), ('ended_at__isnull', False), ('status__in', ['succeeded', 'failed', 'canceled'])), _connector='OR'), name='workflows_run_ended')],
                    },
                ),
                migrations.CreateModel(
                    name='WorkflowStep',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveIntegerField()),
                        ('name', models.CharField(max_length=60)),
                        ('kind', models.CharField(choices=[('prompt', 'prompt'), ('approval', 'approval'), ('delegate', 'delegate'), ('wait', 'wait'), ('note', 'note')], max_length=8)),
                        ('status', models.CharField(choices=[('waiting', 'waiting'), ('answered', 'answered'), ('retrying', 'retrying'), ('succeeded', 'succeeded'), ('failed', 'failed'), ('canceled', 'canceled')], max_length=9)),
                        ('input', models.TextField(blank=True)),
                        ('output', models.TextField(blank=True)),
                        ('data', models.JSONField(null=True)),
                        ('attempts', models.PositiveSmallIntegerField(default=0)),
                        ('error', models.TextField(blank=True)),
                        ('decided_by', models.CharField(blank=True, max_length=200)),
                        ('goal_id', models.UUIDField(null=True)),
                        ('started_at', models.DateTimeField()),
                        ('due_at', models.DateTimeField(null=True)),
                        ('completed_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='agents.agent')),
                        ('run', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='steps', to='workflows.workflowrun')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'workflow step',
                        'ordering': ['number'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('status', 'succeeded'), models.Q(('output', ''), _negated=True)), fields=['tenant', '-completed_at'], name='workflows_step_searched'), models.Index(condition=models.Q(('status__in', ['waiting', 'answered'])), fields=['tenant', 'status', 'kind', 'started_at'], name='workflows_step_waiting'), models.Index(condition=models.Q(('agent__isnull', False)), fields=['tenant', 'agent', '-started_at'], name='workflows_step_by_agent'), models.Index(condition=models.Q(('agent__isnull', False), ('kind', 'delegate'), ('status__in', ['succeeded', 'failed'])), fields=['tenant', '-completed_at'], name='workflows_step_delegated')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'run', 'number'), name='workflows_step_once'), models.CheckConstraint(condition=models.Q(models.Q(('completed_at__isnull', True), ('status__in', ['waiting', 'answered', 'retrying'])), models.Q(('completed_at__isnull', False), ('status__in', ['succeeded', 'failed', 'canceled'])), _connector='OR'), name='workflows_step_completed')],
                    },
                ),
                migrations.CreateModel(
                    name='WorkflowVersion',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveIntegerField()),
                        ('source', models.TextField()),
                        ('content_hash', models.CharField(max_length=64)),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('workflow', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='versions', to='workflows.workflow')),
                    ],
                    options={
                        'ordering': ['-number'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'workflow', 'number'), name='workflows_version_once')],
                    },
                ),
            ],
        ),
    ]
