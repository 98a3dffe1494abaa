"""Levels and changes of audit records, their positions, and the seals over them."""

import apps.audit.models
import apps.tenants.fields
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models

# `apps.audit.services.positions` replaces these functions after a restore.
FUNCTIONS = """
CREATE OR REPLACE FUNCTION audit_position() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT 0 + pg_current_xact_id()::text::bigint
$$;
CREATE OR REPLACE FUNCTION audit_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT 0 + pg_snapshot_xmin(pg_current_snapshot())::text::bigint
$$;
"""
# A process that started before the migration does not name these columns.
DEFAULTS = "".join(
    f"ALTER TABLE audit_{table} ALTER COLUMN {column} SET DEFAULT {value};"
    for table in ("auditevent", "platformevent")
    for column, value in (("level", "'info'"), ("before", "'{}'"), ("after", "'{}'"))
)


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0006_acts_of_knowledge'),
        ('tenants', '0004_default_model'),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, "DROP FUNCTION audit_position(); DROP FUNCTION audit_horizon();"),
        migrations.CreateModel(
            name='AuditSeal',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('previous', models.BinaryField()),
                ('last_position', models.BigIntegerField(default=0)),
                ('last_id', models.UUIDField(null=True)),
                ('events', models.PositiveIntegerField(default=0)),
                ('events_digest', models.BinaryField()),
                ('cursor', models.CharField(blank=True, default='', max_length=60)),
                ('heartbeats', models.PositiveIntegerField(default=0)),
                ('heartbeats_digest', models.BinaryField()),
                ('digest', models.BinaryField()),
                ('key_number', models.PositiveSmallIntegerField()),
                ('signature', models.BinaryField()),
            ],
            options={
                'verbose_name': 'seal',
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.CreateModel(
            name='PlatformSeal',
            fields=[
                ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                ('number', models.BigIntegerField()),
                ('at', models.DateTimeField()),
                ('previous', models.BinaryField()),
                ('last_position', models.BigIntegerField(default=0)),
                ('last_id', models.UUIDField(null=True)),
                ('events', models.PositiveIntegerField(default=0)),
                ('events_digest', models.BinaryField()),
                ('cursor', models.CharField(blank=True, default='', max_length=60)),
                ('heartbeats', models.PositiveIntegerField(default=0)),
                ('heartbeats_digest', models.BinaryField()),
                ('digest', models.BinaryField()),
                ('key_number', models.PositiveSmallIntegerField()),
                ('signature', models.BinaryField()),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddField(
            model_name='auditevent',
            name='after',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='auditevent',
            name='before',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='auditevent',
            name='level',
            field=models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('error', 'error')], default='info', max_length=8),
        ),
        migrations.AddField(
            model_name='auditevent',
            name='position',
            field=models.BigIntegerField(db_default=apps.audit.models.AuditPosition(), editable=False),
        ),
        migrations.AddField(
            model_name='platformevent',
            name='after',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='platformevent',
            name='before',
            field=models.JSONField(default=dict),
        ),
        migrations.AddField(
            model_name='platformevent',
            name='level',
            field=models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('error', 'error')], default='info', max_length=8),
        ),
        migrations.AddField(
            model_name='platformevent',
            name='position',
            field=models.BigIntegerField(db_default=apps.audit.models.AuditPosition(), editable=False),
        ),
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(fields=['tenant', 'position', 'id'], name='audit_event_by_position'),
        ),
        migrations.AddIndex(
            model_name='platformevent',
            index=models.Index(fields=['position', 'id'], name='audit_platform_by_position'),
        ),
        migrations.CreateModel(
            name='SealedBlock',
            fields=[
                ('at', models.DateTimeField()),
                ('events', models.BinaryField(default=b'')),
                ('heartbeats', models.BinaryField(default=b'')),
                ('seal', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='block', serialize=False, to='audit.auditseal')),
            ],
            options={
                'abstract': False,
                'base_manager_name': 'objects',
            },
        ),
        migrations.AddField(
            model_name='auditseal',
            name='tenant',
            field=models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant'),
        ),
        migrations.CreateModel(
            name='PlatformBlock',
            fields=[
                ('at', models.DateTimeField()),
                ('events', models.BinaryField(default=b'')),
                ('heartbeats', models.BinaryField(default=b'')),
                ('seal', models.OneToOneField(on_delete=django.db.models.deletion.CASCADE, primary_key=True, related_name='block', serialize=False, to='audit.platformseal')),
            ],
            options={
                'abstract': False,
            },
        ),
        migrations.AddConstraint(
            model_name='platformseal',
            constraint=models.UniqueConstraint(fields=('number',), name='audit_platform_seal_number'),
        ),
        migrations.AddField(
            model_name='sealedblock',
            name='tenant',
            field=models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant'),
        ),
        migrations.AddConstraint(
            model_name='auditseal',
            constraint=models.UniqueConstraint(fields=('tenant', 'number'), name='audit_seal_number'),
        ),
        migrations.AddIndex(
            model_name='sealedblock',
            index=models.Index(fields=['tenant', 'at'], name='audit_block_by_time'),
        ),
        migrations.RunSQL(DEFAULTS, migrations.RunSQL.noop),
    ]
