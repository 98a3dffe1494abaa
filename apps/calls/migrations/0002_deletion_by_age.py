"""Entries of the ledger outlive their calls, and what is deleted by age is found by an index."""

import apps.tenants.fields
from django.db import migrations, models

_DROP_REFERENCE = "ALTER TABLE calls_ledgerentry DROP CONSTRAINT IF EXISTS calls_ledgerentry_call_id_in_tenant"


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0003_percepts_by_heartbeat'),
        ('calls', '0001_calls'),
        ('tenants', '0001_squashed'),
    ]

    operations = [
        # `protect`, which runs after each migration, makes the reference anew: it empties itself when the call goes.
        migrations.RunSQL(_DROP_REFERENCE, _DROP_REFERENCE),
        migrations.AlterField(
            model_name='ledgerentry',
            name='call',
            field=apps.tenants.fields.TenantForeignKey(deleting='SET NULL', null=True, related_name='+', to='calls.externalcall'),
        ),
        migrations.AddIndex(
            model_name='externalcall',
            index=models.Index(condition=models.Q(('subject_key', ''), _negated=True), fields=['tenant', 'requested_at'], name='calls_maintenance_by_time'),
        ),
        migrations.AddIndex(
            model_name='ledgerentry',
            index=models.Index(fields=['tenant', 'call'], name='calls_ledger_by_call'),
        ),
    ]
