from django.db import migrations

import apps.heartbeats.models


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0007_not_done'),
    ]

    # Entries of older versions, with all of their keys, are read like new ones.
    operations = [
        migrations.AlterField(
            model_name='heartbeat',
            name='actions',
            field=apps.heartbeats.models.ActionEntries(default=list),
        ),
    ]
