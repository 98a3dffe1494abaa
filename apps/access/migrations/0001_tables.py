"""The tables of the app `access`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('access', '0001_initial'),
        ('access', '0002_idempotency'),
        ('access', '0003_tasks_only'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='ApiToken',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=100)),
                        ('role', models.CharField(choices=[('viewer', 'Viewer'), ('operator', 'Operator'), ('owner', 'Owner')], default='viewer', max_length=16)),
                        ('tasks_only', models.BooleanField(db_default=False, default=False)),
                        ('prefix', models.CharField(editable=False, max_length=20)),
                        ('token_hash', models.BinaryField(max_length=32)),
                        ('created_by', models.CharField(editable=False, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('expires_at', models.DateTimeField(blank=True, null=True)),
                        ('last_used_at', models.DateTimeField(editable=False, null=True)),
                        ('revoked_at', models.DateTimeField(editable=False, null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='CASCADE', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'API token',
                        'ordering': ['-created_at', 'id'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'prefix'), name='access_apitoken_prefix'), models.UniqueConstraint(condition=models.Q(('revoked_at', None)), fields=('tenant', 'name'), name='access_apitoken_name')],
                    },
                ),
                migrations.CreateModel(
                    name='IdempotentRequest',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('key', models.CharField(max_length=100)),
                        ('request_hash', models.BinaryField(max_length=32)),
                        ('status', models.PositiveSmallIntegerField(null=True)),
                        ('body', models.BinaryField(default=b'')),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('token', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='access.apitoken')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'default_manager_name': 'objects',
                        'indexes': [models.Index(fields=['created_at'], name='access_request_by_time')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'token', 'key'), name='access_request_once')],
                    },
                ),
            ],
        ),
    ]
