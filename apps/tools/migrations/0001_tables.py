"""The tables of the app `tools`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import arbor.tools.status
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('tools', '0001_initial'),
        ('tools', '0002_grants_to_all'),
    ]

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='ToolServer',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=24)),
                        ('url', models.CharField(max_length=500)),
                        ('sealed_secret', models.JSONField(default=dict)),
                        ('listed_at', models.DateTimeField(null=True)),
                        ('skipped', models.JSONField(default=list)),
                        ('last_error', models.TextField(blank=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='tools_server_name')],
                    },
                ),
                migrations.CreateModel(
                    name='Tool',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=51)),
                        ('description', models.TextField(blank=True)),
                        ('schema', models.JSONField(default=dict)),
                        ('fingerprint', models.CharField(max_length=64)),
                        ('status', models.CharField(choices=[('off', 'off'), ('allowed', 'allowed'), ('changed', 'changed'), ('missing', 'missing')], default=arbor.tools.status.ToolStatus['OFF'], max_length=8)),
                        ('cost', models.PositiveSmallIntegerField()),
                        ('for_all', models.BooleanField(default=True)),
                        ('before', models.JSONField(default=dict)),
                        ('listed_at', models.DateTimeField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('server', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='tools', to='tools.toolserver')),
                    ],
                    options={
                        'ordering': ['server__name', 'name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('status', 'off'), _negated=True), fields=['tenant'], name='tools_in_use')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'server', 'name'), name='tools_tool_name')],
                    },
                ),
            ],
        ),
    ]
