"""Index percepts by the heartbeat that took them in: they are deleted with it."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0002_schedules_moved'),
        ('heartbeats', '0003_schedules_moved'),
        ('tenants', '0001_squashed'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='percept',
            index=models.Index(condition=models.Q(('heartbeat__isnull', False)), fields=['tenant', 'heartbeat'], name='heartbeats_percept_by_beat'),
        ),
    ]
