"""The round trip of a request for approval, named by the glossary; no row is rewritten."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('authority', '0001_tables'),
    ]

    operations = [
        migrations.RenameField(model_name='actionapproval', old_name='turn', new_name='round_trip'),
    ]
