"""The tables of the app `contacts`, as one migration. A database that had all that it replaces is left as it is."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models

import apps.tenants.fields
import arbor.contacts.values
import arbor.ids


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ("contacts", "0001_mind_at_work"),
        ("contacts", "0002_delivery"),
        ("contacts", "0003_tries_before"),
        ("contacts", "0004_words"),
    ]

    dependencies = [
        ('agents', '0001_squashed'),
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.CreateModel(
            name='Channel',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('name', models.CharField(max_length=60)),
                ('kind', models.CharField(choices=[('inbox', 'inbox'), ('email', 'email'), ('webhook', 'webhook'), ('peer', 'peer')], max_length=8)),
                ('audience', models.CharField(choices=[('user', 'user'), ('public', 'public')], max_length=8)),
                ('target', models.CharField(blank=True, max_length=500)),
                ('sealed_secret', models.JSONField(default=dict)),
                ('enabled', models.BooleanField(default=True)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='CASCADE', null=True, related_name='channels', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['name'],
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'name'), name='contacts_channel_name'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ChatSession',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('person', models.CharField(max_length=200)),
                ('started_at', models.DateTimeField()),
                ('last_at', models.DateTimeField()),
                ('ended_at', models.DateTimeField(null=True)),
                ('significance', models.FloatField(null=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='conversations', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'verbose_name': 'conversation',
                'ordering': ['-started_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(fields=['tenant', 'agent', '-started_at'], name='contacts_chat_by_agent'),
                    models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['last_at'], name='contacts_chat_open'),
                ],
            },
        ),
        migrations.CreateModel(
            name='ChatMessage',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('speaker', models.CharField(choices=[('user', 'user'), ('agent', 'agent')], max_length=8)),
                ('content', models.TextField()),
                ('model', models.CharField(blank=True, max_length=200)),
                ('detail', models.JSONField(default=dict)),
                ('error', models.TextField(blank=True)),
                ('at', models.DateTimeField()),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('session', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='messages', to='contacts.chatsession')),
            ],
            options={
                'verbose_name': 'turn of a conversation',
                'verbose_name_plural': 'turns of conversations',
                'ordering': ['at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(fields=['tenant', 'session', 'at'], name='contacts_message_by_chat'),
                ],
            },
        ),
        migrations.CreateModel(
            name='OutboxMessage',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('heartbeat_id', models.UUIDField(null=True)),
                ('kind', models.CharField(choices=[('inbox', 'inbox'), ('email', 'email'), ('webhook', 'webhook'), ('peer', 'peer')], max_length=8)),
                ('audience', models.CharField(choices=[('user', 'user'), ('public', 'public')], max_length=8)),
                ('target', models.CharField(blank=True, max_length=500)),
                ('subject', models.CharField(blank=True, max_length=300)),
                ('content', models.TextField()),
                ('idempotency_key', models.CharField(max_length=100)),
                ('status', models.CharField(choices=[('pending', 'pending'), ('sending', 'sending'), ('sent', 'sent'), ('failed', 'failed'), ('cancelled', 'cancelled')], default=arbor.contacts.values.DeliveryStatus['PENDING'], max_length=9)),
                ('attempts', models.PositiveSmallIntegerField(default=0)),
                ('tries_before', models.PositiveSmallIntegerField(db_default=0, default=0)),
                ('due_at', models.DateTimeField()),
                ('lease_until', models.DateTimeField(null=True)),
                ('last_error', models.TextField(blank=True)),
                ('created_at', models.DateTimeField(default=django.utils.timezone.now)),
                ('sent_at', models.DateTimeField(null=True)),
                ('read_at', models.DateTimeField(null=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='outbox', to='agents.agent')),
                ('channel', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='contacts.channel')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'ordering': ['-created_at'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [
                    models.Index(fields=['tenant', 'agent', '-created_at'], name='contacts_outbox_by_agent'),
                    models.Index(condition=models.Q(('status__in', ['pending', 'sending'])), fields=['due_at'], name='contacts_outbox_due'),
                    models.Index(condition=models.Q(('kind', 'inbox'), ('read_at__isnull', True)), fields=['tenant', '-created_at'], name='contacts_inbox_unread'),
                    models.Index(condition=models.Q(('status', 'failed')), fields=['tenant', '-created_at'], name='contacts_outbox_failed'),
                ],
                'constraints': [
                    models.UniqueConstraint(fields=('tenant', 'idempotency_key'), name='contacts_outbox_once'),
                ],
            },
        ),
    ]
