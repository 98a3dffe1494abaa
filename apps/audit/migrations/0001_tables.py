"""The tables of the app `audit`, and the functions that number its records."""

import apps.audit.models
import apps.tenants.fields
import apps.tenants.table_creation
import arbor.ids
import django.db.models.deletion
from django.db import migrations, models


# `apps.audit.services.positions` replaces these functions after a restore.
FUNCTIONS = """
CREATE FUNCTION audit_position() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT 0 + pg_current_xact_id()::text::bigint
$$;
CREATE FUNCTION audit_horizon() RETURNS bigint LANGUAGE sql STABLE AS $$
    SELECT 0 + pg_snapshot_xmin(pg_current_snapshot())::text::bigint
$$;
"""
# For records that are written by SQL. Defaults in the models would be read back, which roles that only write records may not.
DEFAULTS = "".join(
    f"ALTER TABLE audit_{table} ALTER COLUMN {column} SET DEFAULT {value};"
    for table in ("auditevent", "platformevent")
    for column, value in (("level", "'info'"), ("before", "'{}'"), ("after", "'{}'"))
)


class Migration(migrations.Migration):

    initial = True

    replaces = [
        ('audit', '0001_squashed'),
        ('audit', '0002_acts'),
        ('audit', '0003_self_changed'),
        ('audit', '0004_tokens'),
        ('audit', '0005_acts_of_authority'),
        ('audit', '0006_acts_of_knowledge'),
        ('audit', '0007_levels_and_seals'),
    ]

    dependencies = [
        ('tenants', '0001_tables'),
    ]

    operations = [
        migrations.RunSQL(FUNCTIONS, "DROP FUNCTION audit_position(); DROP FUNCTION audit_horizon();"),
        apps.tenants.table_creation.CreateModels(
            operations=[
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
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'verbose_name': 'seal',
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'constraints': [models.UniqueConstraint(fields=('tenant', 'number'), name='audit_seal_number')],
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
                        'constraints': [models.UniqueConstraint(fields=('number',), name='audit_platform_seal_number')],
                    },
                ),
                migrations.CreateModel(
                    name='PlatformEvent',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('action', models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('self.changed', 'Self Changed'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('member.removed', 'Member Removed'), ('signed_in', 'Signed In'), ('sign_in.failed', 'Sign In Failed'), ('sign_in.blocked', 'Sign In Blocked'), ('password.changed', 'Password Changed'), ('sessions.ended', 'Sessions Ended'), ('account.disabled', 'Account Disabled'), ('account.enabled', 'Account Enabled'), ('token.created', 'Token Created'), ('token.revoked', 'Token Revoked'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level'), ('audit.deleted', 'Audit Deleted'), ('identity.endorsed', 'Identity Endorsed'), ('identity.suspended', 'Identity Suspended'), ('identity.revoked', 'Identity Revoked'), ('identity.rotated', 'Identity Rotated'), ('message.refused', 'Message Refused'), ('capability.granted', 'Capability Granted'), ('capability.delegated', 'Capability Delegated'), ('capability.revoked', 'Capability Revoked'), ('request.refused', 'Request Refused'), ('reflex', 'Reflex'), ('trust.changed', 'Trust Changed'), ('approval.asked', 'Approval Asked'), ('approval.decided', 'Approval Decided'), ('approval.expired', 'Approval Expired'), ('approval.executed', 'Approval Executed'), ('self.rolled_back', 'Self Rolled Back'), ('seed.exported', 'Seed Exported'), ('seed.imported', 'Seed Imported'), ('seed.restored', 'Seed Restored'), ('seed.forked', 'Seed Forked'), ('seed.merged', 'Seed Merged'), ('seed.refused', 'Seed Refused'), ('document.added', 'Document Added'), ('document.changed', 'Document Changed'), ('document.published', 'Document Published'), ('document.withdrawn', 'Document Withdrawn'), ('document.deleted', 'Document Deleted'), ('skill.changed', 'Skill Changed'), ('skill.deleted', 'Skill Deleted'), ('subscription.changed', 'Subscription Changed'), ('workflow.changed', 'Workflow Changed'), ('workflow.started', 'Workflow Started'), ('workflow.ended', 'Workflow Ended'), ('workflow.step_delegated', 'Step Delegated'), ('workflow.step_decided', 'Step Decided'), ('audit.exported', 'Audit Exported')], max_length=40)),
                        ('actor', models.CharField(max_length=200)),
                        ('message', models.TextField()),
                        ('level', models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('error', 'error')], default='info', max_length=8)),
                        ('detail', models.JSONField(default=dict)),
                        ('before', models.JSONField(default=dict)),
                        ('after', models.JSONField(default=dict)),
                        ('position', models.BigIntegerField(db_default=apps.audit.models.AuditPosition(), editable=False)),
                    ],
                    options={
                        'abstract': False,
                        'indexes': [models.Index(fields=['position', 'id'], name='audit_platform_by_position')],
                    },
                ),
                migrations.CreateModel(
                    name='AuditEvent',
                    fields=[
                        ('id', models.UUIDField(default=arbor.ids.uuid7, editable=False, primary_key=True, serialize=False)),
                        ('at', models.DateTimeField(auto_now_add=True)),
                        ('action', models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('self.changed', 'Self Changed'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('member.removed', 'Member Removed'), ('signed_in', 'Signed In'), ('sign_in.failed', 'Sign In Failed'), ('sign_in.blocked', 'Sign In Blocked'), ('password.changed', 'Password Changed'), ('sessions.ended', 'Sessions Ended'), ('account.disabled', 'Account Disabled'), ('account.enabled', 'Account Enabled'), ('token.created', 'Token Created'), ('token.revoked', 'Token Revoked'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level'), ('audit.deleted', 'Audit Deleted'), ('identity.endorsed', 'Identity Endorsed'), ('identity.suspended', 'Identity Suspended'), ('identity.revoked', 'Identity Revoked'), ('identity.rotated', 'Identity Rotated'), ('message.refused', 'Message Refused'), ('capability.granted', 'Capability Granted'), ('capability.delegated', 'Capability Delegated'), ('capability.revoked', 'Capability Revoked'), ('request.refused', 'Request Refused'), ('reflex', 'Reflex'), ('trust.changed', 'Trust Changed'), ('approval.asked', 'Approval Asked'), ('approval.decided', 'Approval Decided'), ('approval.expired', 'Approval Expired'), ('approval.executed', 'Approval Executed'), ('self.rolled_back', 'Self Rolled Back'), ('seed.exported', 'Seed Exported'), ('seed.imported', 'Seed Imported'), ('seed.restored', 'Seed Restored'), ('seed.forked', 'Seed Forked'), ('seed.merged', 'Seed Merged'), ('seed.refused', 'Seed Refused'), ('document.added', 'Document Added'), ('document.changed', 'Document Changed'), ('document.published', 'Document Published'), ('document.withdrawn', 'Document Withdrawn'), ('document.deleted', 'Document Deleted'), ('skill.changed', 'Skill Changed'), ('skill.deleted', 'Skill Deleted'), ('subscription.changed', 'Subscription Changed'), ('workflow.changed', 'Workflow Changed'), ('workflow.started', 'Workflow Started'), ('workflow.ended', 'Workflow Ended'), ('workflow.step_delegated', 'Step Delegated'), ('workflow.step_decided', 'Step Decided'), ('audit.exported', 'Audit Exported')], max_length=40)),
                        ('actor', models.CharField(max_length=200)),
                        ('message', models.TextField()),
                        ('level', models.CharField(choices=[('info', 'info'), ('warning', 'warning'), ('error', 'error')], default='info', max_length=8)),
                        ('detail', models.JSONField(default=dict)),
                        ('before', models.JSONField(default=dict)),
                        ('after', models.JSONField(default=dict)),
                        ('position', models.BigIntegerField(db_default=apps.audit.models.AuditPosition(), editable=False)),
                        ('agent_id', models.UUIDField(null=True)),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', '-at'], name='audit_event_by_time'), models.Index(fields=['tenant', 'agent_id', '-at'], name='audit_event_by_agent'), models.Index(fields=['tenant', 'position', 'id'], name='audit_event_by_position')],
                    },
                ),
                migrations.CreateModel(
                    name='SealedBlock',
                    fields=[
                        ('at', models.DateTimeField()),
                        ('events', models.BinaryField(default=b'')),
                        ('heartbeats', models.BinaryField(default=b'')),
                        ('seal', apps.tenants.fields.TenantOneToOne(deleting='CASCADE', primary_key=True, related_name='block', serialize=False, to='audit.auditseal')),
                        ('tenant', models.ForeignKey(db_index=False, editable=False, on_delete=django.db.models.deletion.CASCADE, related_name='+', to='tenants.tenant')),
                    ],
                    options={
                        'abstract': False,
                        'base_manager_name': 'objects',
                        'indexes': [models.Index(fields=['tenant', 'at'], name='audit_block_by_time')],
                    },
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
            ],
        ),
        migrations.RunSQL(DEFAULTS, migrations.RunSQL.noop),
    ]
