from django.db import migrations

import apps.tenants.fields


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0008_pins'),
    ]

    operations = [
        migrations.AddField(
            model_name='term',
            name='recent',
            field=apps.tenants.fields.IntegerArray(editable=False, null=True),
        ),
    ]
