"""The column that counts heartbeats, named by the glossary; no row is rewritten."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('calls', '0001_tables'),
    ]

    operations = [
        migrations.RenameField(model_name='dailyusage', old_name='beats', new_name='heartbeats'),
    ]
