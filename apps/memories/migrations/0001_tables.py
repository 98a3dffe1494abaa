"""The tables of the app `memories`, and the triggers that raise the revision of a mind."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import arbor.memory.values
import django.db.models.deletion
import django.db.models.functions.datetime
import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.db import migrations, models


_STORAGE = """
-- An index-only scan needs the visibility map: vacuum soon after inserts, by count.
ALTER TABLE memories_memory SET (autovacuum_vacuum_insert_scale_factor = 0, autovacuum_vacuum_insert_threshold = 5000,
    autovacuum_vacuum_scale_factor = 0.02);
-- Vectors stay in the row, uncompressed: they do not compress, and reading them back costs more than scoring.
ALTER TABLE memories_memory ALTER COLUMN lexical SET STORAGE PLAIN, ALTER COLUMN embedding SET STORAGE PLAIN;
-- Each stored memory changes term counts: with free room on a page, the index does not change too.
ALTER TABLE memories_term SET (fillfactor = 70);
-- Room for a version of a row on its own page.
ALTER TABLE memories_episode SET (fillfactor = 70);
-- The table is a cache, which need not survive a crash of the database.
ALTER TABLE memories_activation SET UNLOGGED;
"""
# A revision is the number of a transaction, not a counter: writers of one mind do not wait for each other, and a reader compares
# the number with its own snapshot, so that it misses no change that is committed out of order.
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
# A deleted row has no revision, so its deletion raises the revision of the mind; the mind's trigger replaces the written value. A
# role that may not write minds deletes memories only with their tenant or agent, and so with the mind.
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


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('memories', '0001_squashed'),
        ('memories', '0002_summaries_as_memories'),
        ('memories', '0003_buffer_trust'),
        ('memories', '0004_born_memories_stay'),
        ('memories', '0005_structured_memory'),
        ('memories', '0006_contradictions'),
        ('memories', '0007_buffer_by_memory'),
        ('memories', '0008_pins'),
        ('memories', '0009_recent_terms'),
        ('memories', '0010_pending_upkeep'),
        ('memories', '0011_partial_indexes'),
        ('memories', '0012_episodes_by_start'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='Memory',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('type', models.CharField(choices=[('episodic', 'episodic'), ('semantic', 'semantic'), ('procedural', 'procedural'), ('strategic', 'strategic')], max_length=16)),
                        ('status', models.CharField(choices=[('active', 'active'), ('archived', 'archived')], default=arbor.memory.values.MemoryStatus['ACTIVE'], max_length=16)),
                        ('content', models.TextField()),
                        ('content_hash', models.BinaryField(max_length=32)),
                        ('importance', models.FloatField(default=0.5)),
                        ('decay_rate', models.FloatField(default=0.01)),
                        ('trust', models.FloatField(default=1.0)),
                        ('emotional_valence', models.FloatField(default=0.0)),
                        ('session', models.CharField(blank=True, max_length=100)),
                        ('position', models.IntegerField(default=0)),
                        ('role', models.CharField(blank=True, max_length=100)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('detail', models.JSONField(default=dict)),
                        ('retention', models.CharField(choices=[('routine', 'routine'), ('task', 'task'), ('decision', 'decision'), ('error', 'error'), ('lasting', 'lasting'), ('permanent', 'permanent')], default=arbor.memory.values.Retention['LASTING'], max_length=9)),
                        ('sequence', models.PositiveIntegerField(default=0)),
                        ('occurred_at', models.DateTimeField()),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('expires_at', models.DateTimeField(blank=True, null=True)),
                        ('archived_at', models.DateTimeField(blank=True, null=True)),
                        ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('embedding_model', models.CharField(blank=True, max_length=100)),
                        ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                        ('revision', models.BigIntegerField(db_default=0, editable=False)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='memories', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('episode', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='memories', to='memories.episode')),
                    ],
                    options={
                        'verbose_name_plural': 'memories',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('status', 'active')), fields=['tenant', 'agent'], include=('id', 'occurred_at', 'expires_at', 'embedding', 'lexical', 'session'), name='memories_memory_mind'), models.Index(condition=models.Q(('session', ''), _negated=True), fields=['tenant', 'agent', 'session', 'position'], name='memories_memory_of_session'), models.Index(fields=['tenant', 'agent', '-occurred_at'], name='memories_memory_recent'), models.Index(condition=models.Q(('episode__isnull', False)), fields=['tenant', 'episode', 'sequence'], name='memories_memory_episode'), models.Index(condition=models.Q(('expires_at__isnull', False), ('status', 'active')), fields=['tenant', 'expires_at'], name='memories_memory_expiring'), models.Index(condition=models.Q(('status', 'active')), fields=['tenant', 'agent', 'importance', 'created_at', 'id'], include=('type', 'retention'), name='memories_memory_forgettable'), models.Index(condition=models.Q(('embedding__isnull', True), ('status', 'active')), fields=['tenant', 'created_at'], name='memories_memory_unembedded'), models.Index(fields=['tenant', 'agent', 'revision'], name='memories_memory_revised')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'content_hash', 'session', 'position', 'type'), name='memories_memory_content'), models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='memories_memory_importance'), models.CheckConstraint(condition=models.Q(('trust__gte', 0), ('trust__lte', 1)), name='memories_memory_trust'), models.CheckConstraint(condition=models.Q(('decay_rate__gte', 0)), name='memories_memory_decay_rate')],
                    },
                ),
                migrations.CreateModel(
                    name='EmbedderFault',
                    fields=[
                        ('embedding_model', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('failures', models.PositiveIntegerField()),
                        ('since', models.DateTimeField()),
                        ('retry_at', models.DateTimeField()),
                        ('error', models.CharField(max_length=300)),
                    ],
                ),
                migrations.CreateModel(
                    name='Episode',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('session', models.CharField(blank=True, max_length=100)),
                        ('started_at', models.DateTimeField()),
                        ('last_at', models.DateTimeField()),
                        ('ended_at', models.DateTimeField(null=True)),
                        ('size', models.PositiveIntegerField(default=0)),
                        ('summary', models.TextField(blank=True)),
                        ('summarized_by', models.CharField(blank=True, max_length=200)),
                        ('summarized_at', models.DateTimeField(null=True)),
                        ('remembered', models.BooleanField(db_default=False, default=False)),
                        ('failures', models.PositiveSmallIntegerField(default=0)),
                        ('failure', models.TextField(blank=True)),
                        ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('embedding_model', models.CharField(blank=True, db_default='', max_length=100)),
                        ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='episodes', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-started_at'], name='memories_episode_recent'), models.Index(fields=['tenant', 'agent', 'session', '-started_at'], name='memories_episode_session'), models.Index(condition=models.Q(('ended_at__isnull', False), ('summarized_at__isnull', True)), fields=['tenant', 'ended_at'], name='memories_episode_unsummarized'), models.Index(condition=models.Q(('embedding__isnull', True), ('summarized_at__isnull', False)), fields=['tenant', 'started_at'], name='memories_episode_unembedded'), models.Index(condition=models.Q(('remembered', False), ('summarized_at__isnull', False)), fields=['tenant', 'agent'], name='memories_episode_unremembered'), models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['tenant', 'started_at'], name='memories_episode_open')],
                        'constraints': [models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('tenant', 'agent', 'session'), name='memories_episode_one_open'), models.CheckConstraint(condition=models.Q(('started_at__lte', models.F('last_at'))), name='memories_episode_order')],
                    },
                ),
                migrations.CreateModel(
                    name='JobRun',
                    fields=[
                        ('name', models.CharField(max_length=100, primary_key=True, serialize=False)),
                        ('period_s', models.FloatField(default=0)),
                        ('first_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                        ('ended_at', models.DateTimeField()),
                        ('seconds', models.FloatField()),
                        ('succeeded_at', models.DateTimeField(null=True)),
                        ('done', models.IntegerField(default=0)),
                        ('failed', models.IntegerField(default=0)),
                        ('error', models.CharField(blank=True, max_length=200)),
                    ],
                    options={
                        'verbose_name': 'job',
                    },
                ),
                migrations.CreateModel(
                    name='Cluster',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=200)),
                        ('centroid', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('keywords', models.JSONField(default=list)),
                        ('emotional_valence', models.FloatField(default=0.0)),
                        ('emotional_intensity', models.FloatField(default=0.0)),
                        ('importance', models.FloatField(default=0.0)),
                        ('size', models.PositiveIntegerField(default=0)),
                        ('stale', models.BooleanField(default=True)),
                        ('activations', models.PositiveIntegerField(default=0)),
                        ('activated_at', models.DateTimeField(null=True)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='clusters', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'cluster',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='memories_cluster_by_agent'), models.Index(condition=models.Q(('stale', True)), fields=['tenant', 'agent'], name='memories_cluster_stale')],
                    },
                ),
                migrations.CreateModel(
                    name='ClusterMember',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'cluster_id', 'memory_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('strength', models.FloatField()),
                        ('added_at', models.DateTimeField(auto_now_add=True)),
                        ('cluster', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='members', to='memories.cluster')),
                        ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='clusters', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'cluster member',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'memory'], name='memories_member_by_memory')],
                    },
                ),
                migrations.CreateModel(
                    name='ClusterRelation',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'source_id', 'target_id', 'relation', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('relation', models.CharField(max_length=24)),
                        ('strength', models.FloatField()),
                        ('computed_at', models.DateTimeField(auto_now=True)),
                        ('source', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='relations_out', to='memories.cluster')),
                        ('target', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='relations_in', to='memories.cluster')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'relation of clusters',
                        'verbose_name_plural': 'relations of clusters',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'target'], name='memories_clusterrelation_to')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('source', models.F('target')), _negated=True), name='memories_clusterrelation_not_self')],
                    },
                ),
                migrations.CreateModel(
                    name='CodeSnippet',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('language', models.CharField(blank=True, max_length=40)),
                        ('title', models.CharField(blank=True, max_length=300)),
                        ('code', models.TextField()),
                        ('code_hash', models.BinaryField(max_length=32)),
                        ('source', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='code', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'code snippet',
                        'ordering': ['-created_at'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'code_hash'), name='memories_code_once')],
                    },
                ),
                migrations.CreateModel(
                    name='Concept',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=100)),
                        ('key', models.CharField(max_length=100)),
                        ('description', models.TextField(blank=True)),
                        ('ancestors', models.JSONField(default=list)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='concepts', to='agents.agent')),
                        ('parent', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='children', to='memories.concept')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('parent__isnull', False)), fields=['tenant', 'parent'], name='memories_concept_narrower')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'key'), name='memories_concept_once'), models.CheckConstraint(condition=models.Q(('parent__isnull', True), models.Q(('parent', models.F('id')), _negated=True), _connector='OR'), name='memories_concept_not_own_parent')],
                    },
                ),
                migrations.CreateModel(
                    name='Edge',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('source_kind', models.CharField(choices=[('memory', 'memory'), ('concept', 'concept'), ('belief', 'belief'), ('aspect', 'aspect'), ('goal', 'goal')], max_length=8)),
                        ('source_id', models.UUIDField()),
                        ('target_kind', models.CharField(choices=[('memory', 'memory'), ('concept', 'concept'), ('belief', 'belief'), ('aspect', 'aspect'), ('goal', 'goal')], max_length=8)),
                        ('target_id', models.UUIDField()),
                        ('relation', models.CharField(max_length=24)),
                        ('weight', models.FloatField(default=1.0)),
                        ('note', models.TextField(blank=True)),
                        ('origin', models.CharField(blank=True, max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='edges', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'relation',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', 'target_id'], name='memories_edge_target'), models.Index(condition=models.Q(('relation', 'contradicts')), fields=['tenant', 'agent', '-created_at'], name='memories_edge_contradiction')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'source_id', 'target_id', 'relation'), name='memories_edge_once'), models.CheckConstraint(condition=models.Q(('source_id', models.F('target_id')), _negated=True), name='memories_edge_not_self'), models.CheckConstraint(condition=models.Q(('weight__gte', 0), ('weight__lte', 1)), name='memories_edge_weight')],
                    },
                ),
                migrations.CreateModel(
                    name='EmbeddingCacheEntry',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'model', 'content_hash', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('model', models.CharField(max_length=100)),
                        ('content_hash', models.BinaryField(max_length=32)),
                        ('embedding', pgvector.django.halfvec.HalfVectorField()),
                        ('used_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'cached embedding',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'used_at'], name='memories_cache_by_use')],
                    },
                ),
                migrations.CreateModel(
                    name='MemoryConcept',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'concept_id', 'memory_id', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('strength', models.FloatField(default=1.0)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('concept', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='memories', to='memories.concept')),
                        ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='concepts', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'memory'], name='memories_concept_by_memory')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('strength__gte', 0), ('strength__lte', 1)), name='memories_memoryconcept_strength')],
                    },
                ),
                migrations.CreateModel(
                    name='Mind',
                    fields=[
                        ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='mind', serialize=False, to='agents.agent')),
                        ('embedding_model', models.CharField(max_length=100)),
                        ('embedding_dimension', models.PositiveSmallIntegerField()),
                        ('created_at', models.DateTimeField(db_default=django.db.models.functions.datetime.Now())),
                        ('forgot_at', models.DateTimeField(null=True)),
                        ('cleaned_at', models.DateTimeField(null=True)),
                        ('counted_at', models.DateTimeField(null=True)),
                        ('clustered_at', models.DateTimeField(null=True)),
                        ('revision', models.BigIntegerField(db_default=0, editable=False)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'forgot_at'], name='memories_mind_forgot'), models.Index(fields=['tenant', 'cleaned_at'], name='memories_mind_cleaned'), models.Index(fields=['tenant', 'counted_at'], name='memories_mind_counted'), models.Index(fields=['tenant', 'clustered_at'], name='memories_mind_clustered')],
                    },
                ),
                migrations.CreateModel(
                    name='Term',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'agent_id', 'term', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('term', models.IntegerField()),
                        ('memories', models.IntegerField(default=0)),
                        ('recent', apps.tenants.fields.IntegerArray(editable=False, null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='terms', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='Activation',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='activation', serialize=False, to='memories.memory')),
                        ('level', models.FloatField()),
                        ('at', models.DateTimeField()),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='memories_activation_of_agent')],
                    },
                ),
                migrations.CreateModel(
                    name='MemoryAccess',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='access', serialize=False, to='memories.memory')),
                        ('count', models.IntegerField(default=0)),
                        ('last_at', models.DateTimeField(null=True)),
                        ('reinforced', models.IntegerField(db_default=0)),
                        ('reinforced_at', models.DateTimeField(null=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'memory access',
                        'verbose_name_plural': 'memory accesses',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='NextEmbedding',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='next_embedding', serialize=False, to='memories.memory')),
                        ('embedding_model', models.CharField(max_length=100)),
                        ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='memories_next_by_agent')],
                    },
                ),
                migrations.CreateModel(
                    name='Pin',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='pin', serialize=False, to='memories.memory')),
                        ('pinned_at', models.DateTimeField(auto_now_add=True)),
                        ('pinned_by', models.CharField(max_length=200)),
                        ('decay_rate', models.FloatField()),
                        ('retention', models.CharField(choices=[('routine', 'routine'), ('task', 'task'), ('decision', 'decision'), ('error', 'error'), ('lasting', 'lasting'), ('permanent', 'permanent')], max_length=9)),
                        ('expires_at', models.DateTimeField(null=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='pins', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent', '-pinned_at'], name='memories_pin_of_agent')],
                        'constraints': [models.CheckConstraint(condition=models.Q(('decay_rate__gte', 0)), name='memories_pin_decay_rate')],
                    },
                ),
                migrations.CreateModel(
                    name='Practice',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='practice', serialize=False, to='memories.memory')),
                        ('successes', models.PositiveIntegerField(default=0)),
                        ('failures', models.PositiveIntegerField(default=0)),
                        ('last_at', models.DateTimeField()),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='Upkeep',
                    fields=[
                        ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='upkeep', serialize=False, to='memories.memory')),
                        ('neighbors', models.JSONField(null=True)),
                        ('computed_at', models.DateTimeField(null=True)),
                        ('stale', models.BooleanField(default=True)),
                        ('unclustered', models.BooleanField(default=True)),
                        ('unextracted', models.BooleanField(default=True)),
                        ('unweighed', models.BooleanField(default=False)),
                        ('unindexed', models.BooleanField(db_default=True, default=False)),
                        ('extract_tries', models.PositiveSmallIntegerField(db_default=0)),
                        ('weigh_tries', models.PositiveSmallIntegerField(db_default=0)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'memory in upkeep',
                        'verbose_name_plural': 'memories in upkeep',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('unweighed', True)), fields=['tenant', 'agent'], name='memories_upkeep_unweighed'), models.Index(condition=models.Q(('unindexed', True)), fields=['tenant', 'agent'], name='memories_upkeep_unindexed'), models.Index(condition=models.Q(('stale', True), ('unclustered', True), ('unextracted', True), _connector='OR'), fields=['tenant', 'agent', 'stale', 'unclustered', 'unextracted'], name='memories_upkeep_pending')],
                    },
                ),
                migrations.CreateModel(
                    name='BufferItem',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('content', models.TextField()),
                        ('content_hash', models.BinaryField(max_length=32)),
                        ('role', models.CharField(blank=True, db_default='', max_length=100)),
                        ('importance', models.FloatField(default=0.3)),
                        ('trust', models.FloatField(db_default=1.0, default=1.0)),
                        ('source', models.CharField(blank=True, max_length=200)),
                        ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('embedding_model', models.CharField(blank=True, db_default='', max_length=100)),
                        ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                        ('accesses', models.PositiveIntegerField(default=0)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('expires_at', models.DateTimeField()),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='buffer', to='agents.agent')),
                        ('promoted_to', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='+', to='memories.memory')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'buffer item',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'expires_at'], name='memories_buffer_expiring'), models.Index(condition=models.Q(('promoted_to__isnull', False)), fields=['tenant', 'promoted_to'], name='memories_buffer_by_memory'), models.Index(condition=models.Q(('promoted_to__isnull', True), models.Q(('importance__gte', 0.75), ('accesses__gte', 3), _connector='OR')), fields=['tenant', 'agent'], name='memories_buffer_mattering'), models.Index(condition=models.Q(('embedding__isnull', True)), fields=['tenant', 'created_at'], name='memories_buffer_unembedded')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'content_hash'), name='memories_buffer_once'), models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='memories_buffer_importance'), models.CheckConstraint(condition=models.Q(('trust__gte', 0), ('trust__lte', 1)), name='memories_buffer_trust')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(_STORAGE + _SET_REVISION + _RAISE_MIND, migrations.RunSQL.noop),
    ]
