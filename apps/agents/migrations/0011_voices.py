from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0007_percepts_by_agent'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentpolicy',
            name='voices',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
