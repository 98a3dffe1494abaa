from django.db import migrations

# Grants of actions become names again. The owner of the tables passes row-level security only while it is not forced.
_NAME_GRANTED_ACTIONS = """
DO $$
DECLARE
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'agents_agent'::regclass);
BEGIN
    IF forced THEN
        ALTER TABLE agents_agent NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE authority_capabilitygrant NO FORCE ROW LEVEL SECURITY;
    END IF;
    UPDATE agents_agent a SET allowed_actions = coalesce((
        SELECT jsonb_agg(substr(g.resource, 25) ORDER BY g.id) FROM authority_capabilitygrant g
        WHERE g.tenant_id = a.tenant_id AND g.agent_id = a.id AND g.revoked_at IS NULL
            AND g.resource LIKE 'arbor://actions/execute/%'
    ), '[]');
    IF forced THEN
        ALTER TABLE agents_agent FORCE ROW LEVEL SECURITY;
        ALTER TABLE authority_capabilitygrant FORCE ROW LEVEL SECURITY;
    END IF;
END $$
"""


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0009_sealed_messages'),
        ('authority', '0001_capabilities'),
    ]

    operations = [
        migrations.RunSQL(migrations.RunSQL.noop, _NAME_GRANTED_ACTIONS),
        migrations.RemoveField(
            model_name='agent',
            name='allowed_actions',
        ),
    ]
