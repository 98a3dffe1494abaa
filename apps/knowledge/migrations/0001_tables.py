"""The tables of the app `knowledge`."""

import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import arbor.knowledge.values
import django.db.models.deletion
import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.db import migrations, models


_STORAGE = """
-- Vectors stay in the row, uncompressed: they do not compress, and reading them back costs more than scoring.
ALTER TABLE knowledge_passage ALTER COLUMN lexical SET STORAGE PLAIN, ALTER COLUMN embedding SET STORAGE PLAIN;
-- Each indexed version changes term counts: with free room on a page, the index does not change too.
ALTER TABLE knowledge_passageterm SET (fillfactor = 70);
"""


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('knowledge', '0001_documents'),
        ('knowledge', '0002_skills'),
        ('knowledge', '0003_subscriptions'),
        ('knowledge', '0004_document_refused'),
        ('knowledge', '0005_document_status_by'),
        ('knowledge', '0006_retained_skill_versions'),
        ('knowledge', '0007_document_status_before'),
    ]

    dependencies = [
        ('agents', '0001_tables'),
        ('tenants', '0001_tables'),
    ]

    operations = [
        apps.tenants.table_creation.CreateModels(
            operations=[
                migrations.CreateModel(
                    name='AgentKnowledge',
                    fields=[
                        ('agent', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='knowledge', serialize=False, to='agents.agent')),
                        ('categories', models.JSONField(default=list)),
                        ('changed_by', models.CharField(max_length=200)),
                        ('changed_at', models.DateTimeField(auto_now=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'categories of an agent',
                        'verbose_name_plural': 'categories of agents',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='Document',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=400)),
                        ('title', models.CharField(max_length=300)),
                        ('category', models.CharField(blank=True, db_default='', max_length=60)),
                        ('kind', models.CharField(choices=[('markdown', 'markdown'), ('text', 'text'), ('html', 'html'), ('docx', 'docx'), ('pdf', 'pdf')], max_length=8)),
                        ('status', models.CharField(choices=[('draft', 'draft'), ('published', 'published'), ('withdrawn', 'withdrawn')], default=arbor.knowledge.values.DocumentStatus['DRAFT'], max_length=9)),
                        ('status_by', models.CharField(blank=True, db_default='', max_length=200)),
                        ('status_before', models.CharField(blank=True, choices=[('draft', 'draft'), ('published', 'published'), ('withdrawn', 'withdrawn')], db_default='', max_length=9)),
                        ('version', models.PositiveIntegerField(default=1)),
                        ('indexed_version', models.PositiveIntegerField(default=0)),
                        ('indexing', models.CharField(choices=[('pending', 'pending'), ('indexing', 'indexing'), ('indexed', 'indexed'), ('failed', 'failed')], default=arbor.knowledge.values.IndexingStatus['PENDING'], max_length=8)),
                        ('embedding_model', models.CharField(blank=True, db_default='', max_length=100)),
                        ('passages', models.PositiveIntegerField(default=0)),
                        ('embedded', models.PositiveIntegerField(default=0)),
                        ('refused', models.PositiveIntegerField(db_default=0, default=0)),
                        ('error', models.TextField(blank=True, db_default='')),
                        ('failures', models.PositiveSmallIntegerField(default=0)),
                        ('retry_at', models.DateTimeField(null=True)),
                        ('lease', models.UUIDField(null=True)),
                        ('lease_until', models.DateTimeField(null=True)),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', '-updated_at', '-id'], name='knowledge_document_recent'), models.Index(condition=models.Q(('indexing__in', [arbor.knowledge.values.IndexingStatus['PENDING'], arbor.knowledge.values.IndexingStatus['INDEXING']])), fields=['tenant', 'created_at'], name='knowledge_document_due'), models.Index(fields=['tenant', 'embedding_model'], name='knowledge_document_embedder')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='knowledge_document_name'), models.CheckConstraint(condition=models.Q(('indexed_version__lte', models.F('version'))), name='knowledge_document_indexed')],
                    },
                ),
                migrations.CreateModel(
                    name='DocumentVersion',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('number', models.PositiveIntegerField()),
                        ('kind', models.CharField(choices=[('markdown', 'markdown'), ('text', 'text'), ('html', 'html'), ('docx', 'docx'), ('pdf', 'pdf')], max_length=8)),
                        ('digest', models.BinaryField(max_length=32)),
                        ('content', models.BinaryField()),
                        ('size', models.PositiveIntegerField()),
                        ('text', models.TextField(blank=True, db_default='')),
                        ('pages', models.PositiveIntegerField(default=0)),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('indexed_at', models.DateTimeField(null=True)),
                        ('error', models.TextField(blank=True, db_default='')),
                        ('document', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='versions', to='knowledge.document')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'version of a document',
                        'verbose_name_plural': 'versions of documents',
                        'ordering': ['-number'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'document', 'number'), name='knowledge_version_number')],
                    },
                ),
                migrations.CreateModel(
                    name='GlobalSkill',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=64)),
                        ('description', models.CharField(max_length=1024)),
                        ('version', models.CharField(blank=True, max_length=40)),
                        ('tags', models.JSONField(default=list)),
                        ('digest', models.CharField(max_length=64)),
                        ('tokens', models.PositiveIntegerField()),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('is_present', models.BooleanField(default=True)),
                    ],
                    options={
                        'verbose_name': 'global skill',
                        'ordering': ['name'],
                        'abstract': False,
                        'constraints': [models.UniqueConstraint(fields=('name',), name='knowledge_globalskill_name')],
                    },
                ),
                migrations.CreateModel(
                    name='GlobalSkillVersion',
                    fields=[
                        ('digest', models.CharField(editable=False, max_length=64, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=64)),
                        ('version', models.CharField(blank=True, max_length=40)),
                        ('text', models.TextField()),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                    ],
                    options={
                        'verbose_name': 'version of a global skill',
                        'verbose_name_plural': 'versions of global skills',
                        'ordering': ['created_at', 'digest'],
                        'abstract': False,
                        'indexes': [models.Index(fields=['name', 'created_at'], name='knowledge_globalver_by_name')],
                    },
                ),
                migrations.CreateModel(
                    name='Passage',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('position', models.PositiveIntegerField()),
                        ('headings', models.JSONField(default=list)),
                        ('page', models.PositiveIntegerField(null=True)),
                        ('start', models.PositiveIntegerField()),
                        ('end', models.PositiveIntegerField()),
                        ('text', models.TextField()),
                        ('content_hash', models.BinaryField(max_length=32)),
                        ('tokens', models.PositiveIntegerField()),
                        ('searchable', models.BooleanField(default=False)),
                        ('category', models.CharField(blank=True, db_default='', max_length=60)),
                        ('written_at', models.DateTimeField()),
                        ('embedding', pgvector.django.halfvec.HalfVectorField(null=True)),
                        ('embedding_model', models.CharField(blank=True, db_default='', max_length=100)),
                        ('lexical', pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000)),
                        ('document', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='all_passages', to='knowledge.document')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                        ('version', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='passages', to='knowledge.documentversion')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(condition=models.Q(('searchable', True)), fields=['tenant', 'category'], name='knowledge_passage_search'), models.Index(fields=['tenant', 'document', 'position'], name='knowledge_passage_document'), models.Index(condition=models.Q(('embedding__isnull', True)), fields=['tenant', 'id'], name='knowledge_passage_unembedded')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'version', 'position'), name='knowledge_passage_place'), models.CheckConstraint(condition=models.Q(('start__lte', models.F('end'))), name='knowledge_passage_range')],
                    },
                ),
                migrations.CreateModel(
                    name='PassageTerm',
                    fields=[
                        ('pk', models.CompositePrimaryKey('tenant_id', 'term', blank=True, editable=False, primary_key=True, serialize=False)),
                        ('term', models.IntegerField()),
                        ('passages', models.IntegerField(default=0)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'term of passages',
                        'verbose_name_plural': 'terms of passages',
                        'abstract': False,
                        'base_manager_name': 'objects',
                    },
                ),
                migrations.CreateModel(
                    name='SignalSubscription',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('names', models.JSONField(default=list)),
                        ('position', models.UUIDField()),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='subscriptions', to='agents.agent')),
                        ('source', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', null=True, related_name='+', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'subscription',
                        'ordering': ['created_at', 'id'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'agent'], name='knowledge_sub_by_agent'), models.Index(fields=['tenant', 'source'], name='knowledge_sub_by_source')],
                    },
                ),
                migrations.CreateModel(
                    name='Skill',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=64)),
                        ('description', models.CharField(max_length=1024)),
                        ('version', models.CharField(blank=True, max_length=40)),
                        ('tags', models.JSONField(default=list)),
                        ('digest', models.CharField(max_length=64)),
                        ('tokens', models.PositiveIntegerField()),
                        ('updated_at', models.DateTimeField(auto_now=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'own skill',
                        'ordering': ['name'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'name'), name='knowledge_skill_name')],
                    },
                ),
                migrations.CreateModel(
                    name='SkillVersion',
                    fields=[
                        ('digest', models.CharField(editable=False, max_length=64, primary_key=True, serialize=False)),
                        ('name', models.CharField(max_length=64)),
                        ('version', models.CharField(blank=True, max_length=40)),
                        ('text', models.TextField()),
                        ('created_by', models.CharField(max_length=200)),
                        ('created_at', models.DateTimeField(auto_now_add=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'version of a skill',
                        'verbose_name_plural': 'versions of skills',
                        'ordering': ['created_at', 'digest'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'name', 'created_at'], name='knowledge_skillver_by_name')],
                    },
                ),
                migrations.CreateModel(
                    name='AgentSkill',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('position', models.PositiveSmallIntegerField()),
                        ('name', models.CharField(max_length=64)),
                        ('retained_digest', models.CharField(blank=True, db_default='', default='', max_length=64)),
                        ('agent', apps.tenants.fields.TenantForeignKey(deleting='CASCADE', related_name='active_skills', to='agents.agent')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'active skill',
                        'ordering': ['position'],
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'name'], name='knowledge_agentskill_by_name')],
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'agent', 'position'), name='knowledge_agentskill_position'), models.UniqueConstraint(fields=('tenant', 'agent', 'name'), name='knowledge_agentskill_name'), models.CheckConstraint(condition=models.Q(('position__gte', 1), ('position__lte', 5)), name='knowledge_agentskill_at_most_five')],
                    },
                ),
            ],
        ),
        migrations.RunSQL(_STORAGE, migrations.RunSQL.noop),
    ]
