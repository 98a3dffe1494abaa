"""The daily limit of heartbeats, named by the glossary; no row is rewritten."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        migrations.RenameField(model_name='tenant', old_name='daily_beats', new_name='daily_heartbeats'),
    ]
