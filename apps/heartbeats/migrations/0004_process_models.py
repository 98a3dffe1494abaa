"""Let processes report their model and their calls to providers."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0003_schedules_moved'),
    ]

    operations = [
        migrations.AddField(
            model_name='process',
            name='calls',
            field=models.JSONField(db_default={}, default=dict),
        ),
        migrations.AddField(
            model_name='process',
            name='model',
            field=models.CharField(blank=True, db_default='', max_length=200),
        ),
    ]
