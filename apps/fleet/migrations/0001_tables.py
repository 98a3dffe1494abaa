"""The tables of the app `fleet`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import django.db.models.deletion
import django.db.models.functions.datetime
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('fleet', '0001_saved_seeds'),
        ('fleet', '0002_saved_at'),
    ]

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='SavedSeed',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('agent_id', models.UUIDField()),
                        ('name', models.CharField(max_length=100)),
                        ('public_id', models.CharField(max_length=70)),
                        ('reason', models.CharField(choices=[('requested', 'requested'), ('restore', 'restore'), ('merge', 'merge'), ('uploaded', 'uploaded'), ('reembed', 'reembed'), ('destroy', 'destroy')], max_length=12)),
                        ('digest', models.CharField(max_length=64)),
                        ('bytes', models.BigIntegerField()),
                        ('rows', models.JSONField(default=dict)),
                        ('actor', models.CharField(max_length=200)),
                        ('at', models.DateTimeField()),
                        ('saved_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now(), default=django.utils.timezone.now)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'seed',
                        'ordering': ['-at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent_id', '-at'], name='fleet_seed_by_agent'), models.Index(fields=['tenant', '-at'], name='fleet_seed_by_time')],
                    },
                ),
                migrations.CreateModel(
                    name='SavedSeedPart',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'seed_id', 'number', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveIntegerField()),
                        ('data', models.BinaryField()),
                        ('seed', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='parts', to='fleet.savedseed')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'part of a seed',
                        'verbose_name_plural': 'parts of seeds',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
            ],
        ),
    ]
