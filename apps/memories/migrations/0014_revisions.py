"""Revisions: which transaction wrote a memory last, and which one made a mind's older copies useless."""

from __future__ import annotations

from django.db import migrations, models

# The number of the transaction, not a counter: writers of one mind do not wait for each other, and a reader compares it with
# its own snapshot, so that it misses nothing that is committed out of order.
_SET_REVISION = """
CREATE FUNCTION memories_set_revision() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    NEW.revision := pg_current_xact_id()::text::bigint;
    RETURN NEW;
END
$$;
CREATE TRIGGER memories_memory_revision BEFORE INSERT OR UPDATE ON memories_memory
    FOR EACH ROW EXECUTE FUNCTION memories_set_revision();
CREATE TRIGGER memories_mind_revision
    BEFORE INSERT OR UPDATE OF tenant_id, agent_id, embedding_model, embedding_dimension, revision ON memories_mind
    FOR EACH ROW EXECUTE FUNCTION memories_set_revision();
"""
# A row that is gone has no revision of its own. By the mind's trigger the value that is written does not matter. A role that
# may not write minds deletes memories only with their tenant or agent, which takes the mind as well.
_RAISE_MIND = """
CREATE FUNCTION memories_raise_minds() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF has_table_privilege('public.memories_mind', 'UPDATE') THEN
        UPDATE public.memories_mind m SET revision = 0
        FROM (
            SELECT k.tenant_id, k.agent_id FROM public.memories_mind k
            WHERE (k.tenant_id, k.agent_id) IN (SELECT tenant_id, agent_id FROM gone)
            ORDER BY k.agent_id FOR NO KEY UPDATE
        ) locked
        WHERE m.tenant_id = locked.tenant_id AND m.agent_id = locked.agent_id;
    END IF;
    RETURN NULL;
END
$$;
CREATE TRIGGER memories_memory_deleted AFTER DELETE ON memories_memory
    REFERENCING OLD TABLE AS gone FOR EACH STATEMENT EXECUTE FUNCTION memories_raise_minds();
CREATE FUNCTION memories_raise_left_mind() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    UPDATE public.memories_mind SET revision = 0 WHERE tenant_id = OLD.tenant_id AND agent_id = OLD.agent_id;
    RETURN NULL;
END
$$;
CREATE TRIGGER memories_memory_moved AFTER UPDATE OF tenant_id, agent_id, id ON memories_memory FOR EACH ROW
    WHEN ((OLD.tenant_id, OLD.agent_id, OLD.id) IS DISTINCT FROM (NEW.tenant_id, NEW.agent_id, NEW.id))
    EXECUTE FUNCTION memories_raise_left_mind();
"""
_DROP = """
DROP TRIGGER memories_memory_moved ON memories_memory;
DROP TRIGGER memories_memory_deleted ON memories_memory;
DROP TRIGGER memories_memory_revision ON memories_memory;
DROP TRIGGER memories_mind_revision ON memories_mind;
DROP FUNCTION memories_raise_left_mind(), memories_raise_minds(), memories_set_revision();
"""


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0005_words"),
        ("memories", "0013_words"),
        ("tenants", "0003_words"),
    ]

    operations = [
        migrations.AddField(
            model_name="memory",
            name="revision",
            field=models.BigIntegerField(db_default=0, editable=False),
        ),
        migrations.AddField(
            model_name="mind",
            name="revision",
            field=models.BigIntegerField(db_default=0, editable=False),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(fields=["tenant", "agent", "revision"], name="memories_memory_revised"),
        ),
        migrations.RunSQL(_SET_REVISION + _RAISE_MIND, _DROP),
    ]
