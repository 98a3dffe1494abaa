"""Keys of agents become chains; endorsements, requested capabilities and the System Authority's keys get tables."""

import arbor.agents.endorsement
import arbor.agents.keys
import arbor.ids
import apps.tenants.fields
import django.db.models.deletion
from django.db import migrations, models

# The owner of the tables passes row-level security only while it is not forced; the table is dropped next.
_COPY = """
ALTER TABLE agents_agentkey NO FORCE ROW LEVEL SECURITY;
CREATE TEMPORARY TABLE agents_first_keys ON COMMIT DROP AS
    SELECT tenant_id, agent_id, public_key, sealed_private_key, created_at FROM agents_agentkey
"""
_INSERT_FIRST_KEYS = """
INSERT INTO agents_agentkey (id, tenant_id, agent_id, number, purpose, public_key, sealed_private_key, previous_signature, created_at)
    SELECT gen_random_uuid(), tenant_id, agent_id, 1, 'signing', public_key, sealed_private_key, ''::bytea, created_at
    FROM agents_first_keys
"""
_COPY_FIRST_KEYS = """
ALTER TABLE agents_agentkey NO FORCE ROW LEVEL SECURITY;
CREATE TEMPORARY TABLE agents_first_keys ON COMMIT DROP AS
    SELECT tenant_id, agent_id, public_key, sealed_private_key, created_at FROM agents_agentkey
    WHERE purpose = 'signing' AND number = 1
"""
_INSERT = """
INSERT INTO agents_agentkey (tenant_id, agent_id, public_key, sealed_private_key, created_at)
    SELECT tenant_id, agent_id, public_key, sealed_private_key, created_at FROM agents_first_keys
    WHERE sealed_private_key <> '{}'
"""
_TENANT = models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0007_percepts_by_agent'),
        ('tenants', '0004_default_model'),
    ]

    operations = [
        migrations.RunSQL(_COPY, _INSERT),
        migrations.DeleteModel(name='AgentKey'),
        migrations.CreateModel(
            name='AgentKey',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.PositiveSmallIntegerField(db_default=1, default=1)),
                ('purpose', models.CharField(choices=[('signing', 'signing'), ('exchange', 'exchange')], db_default='signing', default=arbor.agents.keys.KeyPurpose['SIGNING'], max_length=8)),
                ('public_key', models.BinaryField()),
                ('sealed_private_key', models.JSONField(default=dict)),
                ('previous_signature', models.BinaryField(default=b'')),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='keys', to='agents.agent')),
                ('tenant', _TENANT.clone()),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
                'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'purpose', 'number'), name='agents_key_of_agent')],
            },
        ),
        migrations.RunSQL(_INSERT_FIRST_KEYS, _COPY_FIRST_KEYS),
        migrations.CreateModel(
            name='AgentEndorsement',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='endorsement', serialize=False, to='agents.agent')),
                ('status', models.CharField(choices=[('active', 'active'), ('suspended', 'suspended'), ('revoked', 'revoked')], default=arbor.agents.endorsement.EndorsementStatus['ACTIVE'], max_length=12)),
                ('serial', models.PositiveIntegerField(default=1)),
                ('at', models.DateTimeField()),
                ('reason', models.CharField(blank=True, default='', max_length=500)),
                ('authority_number', models.PositiveSmallIntegerField()),
                ('signature', models.BinaryField()),
                ('tenant', _TENANT.clone()),
            ],
            options={
                'verbose_name': 'endorsement',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='AuthorityKey',
            fields=[
                ('number', models.PositiveSmallIntegerField(primary_key=True, serialize=False)),
                ('public_key', models.BinaryField()),
                ('sealed_private_key', models.JSONField()),
                ('created_at', models.DateTimeField(auto_now_add=True)),
            ],
            options={
                'ordering': ['number'],
            },
        ),
        migrations.CreateModel(
            name='RequestedCapability',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('resource', models.CharField(max_length=500)),
                ('description', models.TextField(blank=True, default='')),
                ('constraints', models.JSONField(default=dict)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='requested_capabilities', to='agents.agent')),
                ('tenant', _TENANT.clone()),
            ],
            options={
                'verbose_name': 'requested capability',
                'verbose_name_plural': 'requested capabilities',
                'ordering': ['resource', 'id'],
                'abstract': False,
                'base_manager_name': 'objects',
                'indexes': [models.Index(fields=['tenant', 'agent'], name='agents_requested_of_agent')],
            },
        ),
    ]
