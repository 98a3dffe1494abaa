from django.db import migrations

# Who may recall may search, as new agents may (`arbor.heartbeat.actions.first_actions`), unless a person has decided about it before.
# Not signed: `arbor prepare` signs them. The owner of the tables passes row-level security only while it is not forced.
_GRANT_SEARCHES = """
DO $$
DECLARE
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'authority_capabilitygrant'::regclass);
BEGIN
    IF forced THEN
        ALTER TABLE authority_capabilitygrant NO FORCE ROW LEVEL SECURITY;
    END IF;
    INSERT INTO authority_capabilitygrant (id, tenant_id, agent_id, resource, granted_by, granted_at)
    SELECT gen_random_uuid(), g.tenant_id, g.agent_id, search.resource, 'system:migration', now()
    FROM (
        SELECT DISTINCT tenant_id, agent_id FROM authority_capabilitygrant
        WHERE resource = 'arbor://actions/execute/recall' AND agent_id IS NOT NULL
            AND parent_id IS NULL AND constraints IS NULL AND revoked_at IS NULL
    ) g CROSS JOIN (VALUES
        ('arbor://actions/execute/search_my_memories'), ('arbor://actions/execute/search_knowledge')
    ) search (resource)
    WHERE NOT EXISTS (
        SELECT FROM authority_capabilitygrant own
        WHERE own.tenant_id = g.tenant_id AND own.agent_id = g.agent_id AND own.resource = search.resource
    );
    -- A table with keys that are not checked yet cannot be altered.
    SET CONSTRAINTS ALL IMMEDIATE;
    SET CONSTRAINTS ALL DEFERRED;
    IF forced THEN
        ALTER TABLE authority_capabilitygrant FORCE ROW LEVEL SECURITY;
    END IF;
END $$
"""


class Migration(migrations.Migration):

    dependencies = [
        ('authority', '0003_trust_tiers'),
    ]

    operations = [
        migrations.RunSQL(_GRANT_SEARCHES, migrations.RunSQL.noop),
    ]
