from django.db import migrations

# Tools of all agents become grants to all agents; `arbor prepare` signs them. The owner of the tables passes row-level
# security only while it is not forced.
_GRANT_TOOLS_OF_ALL = """
DO $$
DECLARE
    forced boolean := (SELECT relforcerowsecurity FROM pg_class WHERE oid = 'tools_tool'::regclass);
BEGIN
    IF forced THEN
        ALTER TABLE tools_tool NO FORCE ROW LEVEL SECURITY;
        ALTER TABLE tools_toolserver NO FORCE ROW LEVEL SECURITY;
    END IF;
    INSERT INTO authority_capabilitygrant (id, tenant_id, resource, granted_by, granted_at)
    SELECT gen_random_uuid(), t.tenant_id, 'arbor://actions/execute/mcp.' || s.name || '.' || t.name, 'system:migration', now()
    FROM tools_tool t JOIN tools_toolserver s ON s.tenant_id = t.tenant_id AND s.id = t.server_id
    WHERE t.for_all AND t.status <> 'off';
    IF forced THEN
        ALTER TABLE tools_tool FORCE ROW LEVEL SECURITY;
        ALTER TABLE tools_toolserver FORCE ROW LEVEL SECURITY;
    END IF;
END $$
"""


class Migration(migrations.Migration):

    dependencies = [
        ('authority', '0001_capabilities'),
        ('tools', '0001_initial'),
    ]

    operations = [
        migrations.RunSQL(_GRANT_TOOLS_OF_ALL, migrations.RunSQL.noop),
    ]
