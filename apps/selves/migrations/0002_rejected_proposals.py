"""Rename the count of rejected proposals."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('selves', '0001_tables'),
    ]

    operations = [
        migrations.RenameField(model_name='proposalcalibration', old_name='refused', new_name='rejected'),
    ]
