"""The estimated tokens of calls, and the tokens that models count for an estimated one."""

import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('calls', '0002_deletion_by_age'),
        ('tenants', '0002_sessions'),
    ]

    operations = [
        migrations.AddField(
            model_name='ledgerentry',
            name='estimated_tokens',
            field=models.IntegerField(db_default=0, default=0),
        ),
        migrations.CreateModel(
            name='TokenRatio',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('model', models.CharField(max_length=200)),
                ('ratio', models.FloatField()),
                ('calls', models.PositiveIntegerField()),
                ('learnt_at', models.DateTimeField()),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'model'), name='calls_token_ratio_once')],
            },
        ),
    ]
