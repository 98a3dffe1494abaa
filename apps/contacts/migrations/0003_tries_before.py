from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('contacts', '0002_delivery'),
    ]

    operations = [
        migrations.AddField(
            model_name='outboxmessage',
            name='tries_before',
            field=models.PositiveSmallIntegerField(db_default=0, default=0),
        ),
    ]
