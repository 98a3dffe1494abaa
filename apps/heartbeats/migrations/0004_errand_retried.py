"""Errands that failed and were let be asked anew."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('heartbeats', '0003_errands'),
    ]

    operations = [
        migrations.AlterField(
            model_name='externalcall',
            name='status',
            field=models.CharField(choices=[('pending', 'Pending'), ('running', 'Running'), ('complete', 'Complete'), ('failed', 'Failed'), ('retried', 'Retried')], default='pending', max_length=8),
        ),
    ]
