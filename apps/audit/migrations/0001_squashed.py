"""The tables of the app `audit`, as one migration. A database that had all that it replaces is left as it is."""

import django.db.models.deletion
from django.db import migrations, models

import arbor.ids


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("audit", "0001_initial"),
        ("audit", "0002_forgetting"),
        ("audit", "0003_health"),
        ("audit", "0004_budget_level"),
        ("audit", "0005_boundary"),
        ("audit", "0006_memories_revised"),
    ]

    dependencies = [
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='PlatformEvent',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('action', models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level')], max_length=40)),
                ('actor', models.CharField(max_length=200)),
                ('message', models.TextField()),
                ('detail', models.JSONField(default=dict)),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.CreateModel(
            name='AuditEvent',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('at', models.DateTimeField(auto_now_add=True)),
                ('action', models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level')], max_length=40)),
                ('actor', models.CharField(max_length=200)),
                ('message', models.TextField()),
                ('detail', models.JSONField(default=dict)),
                ('agent_id', models.UUIDField(null=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', '-at'], name='audit_event_by_time'), models.Index(fields=['tenant', 'agent_id', '-at'], name='audit_event_by_agent')],
            },
        ),
    ]
