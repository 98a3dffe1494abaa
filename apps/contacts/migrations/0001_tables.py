"""The tables of the app `contacts`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.contacts.values
import arbor.ids
import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('contacts', '0001_squashed'),
        ('contacts', '0002_partial_replies'),
        ('contacts', '0003_client_keys'),
        ('contacts', '0004_signal_webhooks'),
        ('contacts', '0005_client_digests'),
        ('contacts', '0006_hooks'),
        ('contacts', '0007_answers'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='ChatMessage',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('speaker', models.CharField(choices=[('user', 'user'), ('agent', 'agent')], max_length=8)),
                        ('content', models.TextField()),
                        ('model', models.CharField(blank=True, max_length=200)),
                        ('detail', models.JSONField(default=dict)),
                        ('error', models.TextField(blank=True)),
                        ('client_digest', models.CharField(editable=False, max_length=64, null=True)),
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
                        'indexes': [models.Index(fields=['tenant', 'session', 'at'], name='contacts_message_by_chat')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('client_digest__isnull', False)), fields=('tenant', 'client_digest'), name='contacts_message_once')],
                    },
                ),
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
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='contacts_channel_name')],
                    },
                ),
                migrations.CreateModel(
                    name='PartialReply',
                    fields=[
                        ('turn', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='partial_reply', serialize=False, to='contacts.chatmessage')),
                        ('attempt', models.PositiveIntegerField()),
                        ('sentences', models.JSONField(default=list)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name_plural': 'partial replies',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='ChatSession',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('person', models.CharField(max_length=200)),
                        ('client_key', models.CharField(blank=True, db_default='', default='', max_length=100)),
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
                        'indexes': [models.Index(fields=['tenant', 'agent', '-started_at'], name='contacts_chat_by_agent'), models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['last_at'], name='contacts_chat_open')],
                    },
                ),
                migrations.CreateModel(
                    name='Hook',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=60)),
                        ('kind', models.CharField(choices=[('github', 'github'), ('json', 'json')], max_length=8)),
                        ('signature_header', models.CharField(blank=True, max_length=60)),
                        ('mapping', models.JSONField(default=dict)),
                        ('events', models.JSONField(default=list)),
                        ('urgent_from', models.FloatField(blank=True, null=True)),
                        ('sealed_secret', models.JSONField(default=dict)),
                        ('previous_until', models.DateTimeField(null=True)),
                        ('active', models.BooleanField(default=True)),
                        ('refused_at', models.DateTimeField(null=True)),
                        ('last_refusal', models.CharField(blank=True, max_length=300)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='hooks', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='contacts_hook_by_agent')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='contacts_hook_name')],
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
                        ('answers', models.PositiveIntegerField(db_default=0, default=0)),
                        ('last_answer', models.CharField(blank=True, db_default='', default='', max_length=200)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='outbox', to='agents.agent')),
                        ('channel', apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='contacts.channel')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['-created_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-created_at'], name='contacts_outbox_by_agent'), models.Index(condition=models.Q(('status__in', ['pending', 'sending'])), fields=['due_at'], name='contacts_outbox_due'), models.Index(condition=models.Q(('kind', 'inbox'), ('read_at__isnull', True)), fields=['tenant', '-created_at'], name='contacts_inbox_unread'), models.Index(condition=models.Q(('status', 'failed')), fields=['tenant', '-created_at'], name='contacts_outbox_failed')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'idempotency_key'), name='contacts_outbox_once')],
                    },
                ),
                migrations.CreateModel(
                    name='SignalWebhook',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=60)),
                        ('url', models.CharField(max_length=500)),
                        ('signals', models.JSONField(default=list)),
                        ('sealed_secret', models.JSONField(default=dict)),
                        ('previous_until', models.DateTimeField(null=True)),
                        ('active', models.BooleanField(default=True)),
                        ('position', models.CharField(max_length=60)),
                        ('failed_end', models.CharField(blank=True, max_length=60)),
                        ('failures', models.PositiveIntegerField(default=0)),
                        ('failing_since', models.DateTimeField(null=True)),
                        ('last_error', models.TextField(blank=True)),
                        ('delivered_at', models.DateTimeField(null=True)),
                        ('due_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('lease', models.PositiveBigIntegerField(default=0)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='CASCADE', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'webhook',
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='contacts_webhook_agent')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='contacts_signalwebhook_name')],
                    },
                ),
                migrations.CreateModel(
                    name='HookDelivery',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('once_key', models.CharField(max_length=220)),
                        ('delivery_id', models.CharField(blank=True, max_length=200)),
                        ('event', models.CharField(blank=True, max_length=200)),
                        ('status', models.CharField(choices=[('perceived', 'perceived'), ('ignored', 'ignored'), ('confirmed', 'confirmed'), ('retrying', 'retrying'), ('resending', 'resending'), ('failed', 'failed')], max_length=10)),
                        ('attempts', models.PositiveIntegerField(default=1)),
                        ('error', models.TextField(blank=True)),
                        ('percept_id', models.UUIDField(null=True)),
                        ('body', models.TextField(blank=True)),
                        ('begin', models.CharField(blank=True, max_length=60)),
                        ('end', models.CharField(blank=True, max_length=60)),
                        ('at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('tried_at', models.DateTimeField(default=django.utils.timezone.now)),
                        ('hook', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='deliveries', to='contacts.hook')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('webhook', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='deliveries', to='contacts.signalwebhook')),
                    ],
                    options={
                        'verbose_name': 'delivery',
                        'verbose_name_plural': 'deliveries',
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', '-at'], name='contacts_delivery_by_time'), models.Index(fields=['tenant', 'hook', '-at'], name='contacts_delivery_by_hook'), models.Index(fields=['tenant', 'webhook', '-at'], name='contacts_delivery_by_webhook'), models.Index(condition=models.Q(('status', 'resending')), fields=['tenant', 'webhook'], name='contacts_delivery_resent')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'hook', 'once_key'), name='contacts_delivery_hook_once'), models.UniqueConstraint(fields=('tenant', 'webhook', 'once_key'), name='contacts_delivery_webhook_once'), models.CheckConstraint(condition=models.Q(('hook__isnull', True), ('webhook__isnull', True), _connector='XOR'), name='contacts_delivery_of_one')],
                    },
                ),
            ],
        ),
    ]
