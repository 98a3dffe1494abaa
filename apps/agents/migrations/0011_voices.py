from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0009_sealed_messages'),
        ('agents', '0010_allowed_actions'),
    ]

    operations = [
        migrations.AddField(
            model_name='agentpolicy',
            name='voices',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
