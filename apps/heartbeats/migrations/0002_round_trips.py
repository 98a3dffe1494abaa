"""The number of round trips, named by the glossary; no row is rewritten."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0001_tables'),
    ]

    operations = [
        migrations.RenameField(model_name='heartbeat', old_name='turns', new_name='round_trips'),
    ]
