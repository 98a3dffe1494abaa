"""The whole of an agent's mind: episodes, clusters, concepts, neighborhoods, the graph, and vectors of any length."""

from __future__ import annotations

import apps.tenants.fields
import arbor.ids
import arbor.memory.values
import django.db.models.deletion
import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.conf import settings
from django.db import migrations, models

_KINDS = [(kind, kind) for kind in ("memory", "concept", "belief", "aspect", "goal")]
_RELATIONS = (
    "associated", "causes", "derived_from", "contradicts", "supports", "temporal_next", "instance_of", "parent_of",
    "evolved_into", "similar_to", "requires", "reminds_of", "learned_from",
)
# The ends of an edge may be of several kinds: the references to memories become plain ids.
_EDGES = [
    migrations.SeparateDatabaseAndState(
        state_operations=[
            migrations.RemoveConstraint(model_name="edge", name="memories_edge_once"),
            migrations.RemoveConstraint(model_name="edge", name="memories_edge_not_self"),
            migrations.RemoveIndex(model_name="edge", name="memories_edge_target"),
            migrations.RemoveField(model_name="edge", name="source"),
            migrations.RemoveField(model_name="edge", name="target"),
            migrations.AddField(model_name="edge", name="source_id", field=models.UUIDField()),
            migrations.AddField(model_name="edge", name="target_id", field=models.UUIDField()),
        ],
        database_operations=[
            migrations.RunSQL(
                "ALTER TABLE memories_edge NO FORCE ROW LEVEL SECURITY;"
                " ALTER TABLE memories_edge DROP CONSTRAINT IF EXISTS memories_edge_source_id_in_tenant,"
                " DROP CONSTRAINT IF EXISTS memories_edge_target_id_in_tenant,"
                " DROP CONSTRAINT memories_edge_once, DROP CONSTRAINT memories_edge_not_self;"
                " DROP INDEX memories_edge_target;"
                " UPDATE memories_edge SET relation = CASE WHEN lower(relation) IN ("
                + ", ".join(f"'{relation}'" for relation in _RELATIONS)
                + ") THEN lower(relation) ELSE 'associated' END"
            ),
        ],
    ),
    migrations.AddField(
        model_name="edge",
        name="source_kind",
        field=models.CharField(choices=_KINDS, default="memory", max_length=8),
        preserve_default=False,
    ),
    migrations.AddField(
        model_name="edge",
        name="target_kind",
        field=models.CharField(choices=_KINDS, default="memory", max_length=8),
        preserve_default=False,
    ),
    migrations.AddField(model_name="edge", name="weight", field=models.FloatField(default=1.0)),
    migrations.AddField(model_name="edge", name="note", field=models.TextField(blank=True)),
    migrations.AddField(model_name="edge", name="origin", field=models.CharField(blank=True, max_length=200)),
    migrations.AddIndex(
        model_name="edge",
        index=models.Index(fields=["tenant", "agent", "target_id"], name="memories_edge_target"),
    ),
    migrations.AddConstraint(
        model_name="edge",
        constraint=models.UniqueConstraint(
            fields=("tenant", "agent", "source_id", "target_id", "relation"), name="memories_edge_once"
        ),
    ),
    migrations.AddConstraint(
        model_name="edge",
        constraint=models.CheckConstraint(
            condition=models.Q(("source_id", models.F("target_id")), _negated=True), name="memories_edge_not_self"
        ),
    ),
    migrations.AddConstraint(
        model_name="edge",
        constraint=models.CheckConstraint(
            condition=models.Q(("weight__gte", 0), ("weight__lte", 1)), name="memories_edge_weight"
        ),
    ),
]
_MODEL = settings.ARBOR_EMBEDDING_MODEL.replace("'", "''")
_STORAGE = [
    # A cache: it need not survive a crash of the database.
    migrations.RunSQL("ALTER TABLE memories_activation SET UNLOGGED", migrations.RunSQL.noop),
    # What is remembered already gets its mind and its upkeep. A mind's vectors are what the rows say they are, whatever the
    # settings say by now. `protection` forces row-level security again.
    migrations.RunSQL(
        f"""
        ALTER TABLE memories_memory NO FORCE ROW LEVEL SECURITY;
        INSERT INTO memories_mind (tenant_id, agent_id, embedding_model, embedding_dimension)
        SELECT tenant_id, agent_id,
            coalesce(
                mode() WITHIN GROUP (ORDER BY regexp_replace(embedding_model, '^wordllama/.*', 'wordllama'))
                    FILTER (WHERE embedding IS NOT NULL),
                '{_MODEL}'
            ),
            coalesce(
                mode() WITHIN GROUP (ORDER BY vector_dims(embedding)) FILTER (WHERE embedding IS NOT NULL),
                {int(settings.ARBOR_EMBEDDING_DIMENSION)}
            )
        FROM memories_memory GROUP BY tenant_id, agent_id;
        INSERT INTO memories_upkeep (tenant_id, agent_id, memory_id, stale, unclustered, unextracted, unweighed)
        SELECT tenant_id, agent_id, id, status = 'active', status = 'active', status = 'active', false
        FROM memories_memory
        """,
        migrations.RunSQL.noop,
    ),
    # Stretches without a gap of half an hour within a session; the last one of a session that is still going on stays open.
    migrations.RunSQL(
        """
        CREATE TEMPORARY TABLE backfill ON COMMIT DROP AS
        WITH gaps AS (
            SELECT tenant_id, agent_id, session, id, occurred_at, position,
                occurred_at - lag(occurred_at) OVER w > interval '30 minutes' AS gap
            FROM memories_memory WHERE type = 'episodic'
            WINDOW w AS (PARTITION BY tenant_id, agent_id, session ORDER BY occurred_at, position, id)
        ), islands AS (
            SELECT *, count(*) FILTER (WHERE gap) OVER (
                PARTITION BY tenant_id, agent_id, session ORDER BY occurred_at, position, id
            ) AS island FROM gaps
        )
        SELECT tenant_id, agent_id, session, id, occurred_at, island,
            first_value(id) OVER w AS first_id, row_number() OVER w AS place
        FROM islands
        WINDOW w AS (PARTITION BY tenant_id, agent_id, session, island ORDER BY occurred_at, position, id);
        INSERT INTO memories_episode (tenant_id, id, agent_id, session, started_at, last_at, ended_at, size, summary,
            summarized_by, failures, failure)
        SELECT tenant_id, first_id, agent_id, session, min(occurred_at), max(occurred_at),
            CASE
                WHEN max(occurred_at) < now() - interval '30 minutes' THEN now()
                -- One at most is open, whatever the clock said.
                WHEN max(occurred_at) < max(max(occurred_at)) OVER (PARTITION BY tenant_id, agent_id, session) THEN now()
            END, count(*), '', '', 0, ''
        FROM backfill GROUP BY tenant_id, agent_id, session, first_id;
        UPDATE memories_memory m SET episode_id = b.first_id, sequence = b.place
        FROM backfill b WHERE m.tenant_id = b.tenant_id AND m.id = b.id;
        """,
        migrations.RunSQL.noop,
    ),
]


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0002_storage'),
        ('memories', '0002_storage'),
        ('tenants', '0001_initial'),
    ]

    operations = [
        migrations.CreateModel(
            name='Mind',
            fields=[
                ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='mind', serialize=False, to='agents.agent')),
                ('embedding_model', models.CharField(max_length=100)),
                ('embedding_dimension', models.PositiveSmallIntegerField()),
                ('forgot_at', models.DateTimeField(null=True)),
                ('clustered_at', models.DateTimeField(null=True)),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
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
                ('failures', models.PositiveSmallIntegerField(default=0)),
                ('failure', models.TextField(blank=True)),
                ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='episodes', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
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
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='ClusterMember',
            fields=[
                ('strength', models.FloatField()),
                ('added_at', models.DateTimeField(auto_now_add=True)),
                ('cluster', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='members', to='memories.cluster')),
                ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='clusters', to='memories.memory')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('pk', models.CompositePrimaryKey('tenant_id', 'cluster_id', 'memory_id', blank=True, editable=False, primary_key=True, serialize=False)),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='ClusterRelation',
            fields=[
                ('relation', models.CharField(max_length=24)),
                ('strength', models.FloatField()),
                ('computed_at', models.DateTimeField(auto_now=True)),
                ('source', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='relations_out', to='memories.cluster')),
                ('target', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='relations_in', to='memories.cluster')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('pk', models.CompositePrimaryKey('tenant_id', 'source_id', 'target_id', 'relation', blank=True, editable=False, primary_key=True, serialize=False)),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='MemoryConcept',
            fields=[
                ('strength', models.FloatField(default=1.0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('concept', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='memories', to='memories.concept')),
                ('memory', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='concepts', to='memories.memory')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                ('pk', models.CompositePrimaryKey('tenant_id', 'concept_id', 'memory_id', blank=True, editable=False, primary_key=True, serialize=False)),
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
            },
        ),
        migrations.CreateModel(
            name='BufferItem',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('content', models.TextField()),
                ('content_hash', models.BinaryField(max_length=32)),
                ('importance', models.FloatField(default=0.3)),
                ('source', models.CharField(blank=True, max_length=200)),
                ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True)),
                ('accesses', models.PositiveIntegerField(default=0)),
                ('created_at', models.DateTimeField(auto_now_add=True)),
                ('expires_at', models.DateTimeField()),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='buffer', to='agents.agent')),
                ('promoted_to', apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='+', to='memories.memory')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='NextEmbedding',
            fields=[
                ('memory', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='next_embedding', serialize=False, to='memories.memory')),
                ('embedding_model', models.CharField(max_length=100)),
                ('embedding', pgvector.django.halfvec.HalfVectorField()),
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
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
                ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='+', to='agents.agent')),
                ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='memory',
            name='retention',
            field=models.CharField(choices=[('routine', 'routine'), ('task', 'task'), ('decision', 'decision'), ('error', 'error'), ('lasting', 'lasting'), ('permanent', 'permanent')], default=arbor.memory.values.Retention['LASTING'], max_length=9),
        ),
        migrations.AddField(
            model_name='memory',
            name='sequence',
            field=models.PositiveIntegerField(default=0),
        ),
        migrations.AddField(
            model_name='memoryaccess',
            name='reinforced',
            field=models.IntegerField(db_default=0),
        ),
        migrations.AddField(
            model_name='memoryaccess',
            name='reinforced_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AlterField(
            model_name='embeddingcacheentry',
            name='embedding',
            field=pgvector.django.halfvec.HalfVectorField(),
        ),
        migrations.AlterField(
            model_name='memory',
            name='embedding',
            field=pgvector.django.halfvec.HalfVectorField(null=True),
        ),
        migrations.AlterField(
            model_name='memoryaccess',
            name='last_at',
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name='memory',
            name='episode',
            field=apps.tenants.fields.TenantForeignKey(blank=True, deleting='SET NULL', null=True, related_name='memories', to='memories.episode'),
        ),
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('episode__isnull', False)), fields=['tenant', 'episode', 'sequence'], name='memories_memory_episode'),
        ),
        migrations.AddIndex(
            model_name='activation',
            index=models.Index(fields=['tenant', 'agent', '-at'], name='memories_activation_by_agent'),
        ),
        migrations.AddIndex(
            model_name='bufferitem',
            index=models.Index(fields=['tenant', 'expires_at'], name='memories_buffer_expiring'),
        ),
        migrations.AddConstraint(
            model_name='bufferitem',
            constraint=models.UniqueConstraint(fields=('tenant', 'agent', 'content_hash'), name='memories_buffer_once'),
        ),
        migrations.AddConstraint(
            model_name='bufferitem',
            constraint=models.CheckConstraint(condition=models.Q(('importance__gte', 0), ('importance__lte', 1)), name='memories_buffer_importance'),
        ),
        migrations.AddIndex(
            model_name='cluster',
            index=models.Index(fields=['tenant', 'agent'], name='memories_cluster_by_agent'),
        ),
        migrations.AddIndex(
            model_name='cluster',
            index=models.Index(condition=models.Q(('stale', True)), fields=['tenant', 'agent'], name='memories_cluster_stale'),
        ),
        migrations.AddIndex(
            model_name='clustermember',
            index=models.Index(fields=['tenant', 'memory'], name='memories_member_by_memory'),
        ),
        migrations.AddIndex(
            model_name='clusterrelation',
            index=models.Index(fields=['tenant', 'target'], name='memories_clusterrelation_to'),
        ),
        migrations.AddConstraint(
            model_name='clusterrelation',
            constraint=models.CheckConstraint(condition=models.Q(('source', models.F('target')), _negated=True), name='memories_clusterrelation_not_self'),
        ),
        migrations.AddIndex(
            model_name='concept',
            index=models.Index(fields=['tenant', 'parent'], name='memories_concept_by_parent'),
        ),
        migrations.AddConstraint(
            model_name='concept',
            constraint=models.UniqueConstraint(fields=('tenant', 'agent', 'key'), name='memories_concept_once'),
        ),
        migrations.AddConstraint(
            model_name='concept',
            constraint=models.CheckConstraint(condition=models.Q(('parent__isnull', True), models.Q(('parent', models.F('id')), _negated=True), _connector='OR'), name='memories_concept_not_own_parent'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(fields=['tenant', 'agent', '-last_at'], name='memories_episode_recent'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('ended_at__isnull', False), ('summarized_at__isnull', True)), fields=['tenant', 'ended_at'], name='memories_episode_unsummarized'),
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('ended_at__isnull', True)), fields=['tenant', 'last_at'], name='memories_episode_open'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.UniqueConstraint(condition=models.Q(('ended_at__isnull', True)), fields=('tenant', 'agent', 'session'), name='memories_episode_one_open'),
        ),
        migrations.AddConstraint(
            model_name='episode',
            constraint=models.CheckConstraint(condition=models.Q(('started_at__lte', models.F('last_at'))), name='memories_episode_order'),
        ),
        migrations.AddIndex(
            model_name='memoryconcept',
            index=models.Index(fields=['tenant', 'memory'], name='memories_concept_by_memory'),
        ),
        migrations.AddConstraint(
            model_name='memoryconcept',
            constraint=models.CheckConstraint(condition=models.Q(('strength__gte', 0), ('strength__lte', 1)), name='memories_memoryconcept_strength'),
        ),
        migrations.AddIndex(
            model_name='mind',
            index=models.Index(fields=['tenant', 'forgot_at'], name='memories_mind_forgot'),
        ),
        migrations.AddIndex(
            model_name='mind',
            index=models.Index(fields=['tenant', 'clustered_at'], name='memories_mind_clustered'),
        ),
        migrations.AddIndex(
            model_name='nextembedding',
            index=models.Index(fields=['tenant', 'agent'], name='memories_next_by_agent'),
        ),
        migrations.AddIndex(
            model_name='upkeep',
            index=models.Index(condition=models.Q(('stale', True)), fields=['tenant', 'agent'], name='memories_upkeep_stale'),
        ),
        migrations.AddIndex(
            model_name='upkeep',
            index=models.Index(condition=models.Q(('unclustered', True)), fields=['tenant', 'agent'], name='memories_upkeep_unclustered'),
        ),
        migrations.AddIndex(
            model_name='upkeep',
            index=models.Index(condition=models.Q(('unextracted', True)), fields=['tenant', 'agent'], name='memories_upkeep_unextracted'),
        ),
        migrations.AddIndex(
            model_name='upkeep',
            index=models.Index(condition=models.Q(('unweighed', True)), fields=['tenant', 'agent'], name='memories_upkeep_unweighed'),
        ),
        *_EDGES,
        *_STORAGE,
    ]
