"""The heartbeat that handled a percept, which is a row of a later app."""

import apps.tenants.fields
from django.db import migrations, models


class Migration(migrations.Migration):

    replaces = [
        ('agents', '0003_percepts_by_heartbeat'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('heartbeats', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        migrations.AddField(
            model_name='percept',
            name='heartbeat',
            field=apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='heartbeats.heartbeat'),
        ),
        migrations.AddIndex(
            model_name='percept',
            index=models.Index(condition=models.Q(('heartbeat__isnull', True)), fields=['tenant', 'agent', 'at'], name='heartbeats_percept_waiting'),
        ),
        migrations.AddIndex(
            model_name='percept',
            index=models.Index(condition=models.Q(('heartbeat__isnull', False)), fields=['tenant', 'heartbeat'], name='heartbeats_percept_by_beat'),
        ),
    ]
