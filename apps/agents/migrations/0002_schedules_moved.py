"""Schedules and percepts, moved here from the app `heartbeats`; their tables stay as they are."""

import apps.tenants.fields
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0001_squashed'),
        ('heartbeats', '0003_schedules_moved'),
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.SeparateDatabaseAndState(
            state_operations=[
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
                        'db_table': 'heartbeats_percept',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('heartbeat__isnull', True)), fields=['tenant', 'agent', 'at'], name='heartbeats_percept_waiting')],
                    },
                ),
            ]
        ),
    ]
