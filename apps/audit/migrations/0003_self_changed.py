"""Name changes of selves among the audited acts."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0002_acts'),
    ]

    operations = [
        migrations.AlterField(
            model_name='auditevent',
            name='action',
            field=models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('self.changed', 'Self Changed'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('member.removed', 'Member Removed'), ('signed_in', 'Signed In'), ('sign_in.failed', 'Sign In Failed'), ('sign_in.blocked', 'Sign In Blocked'), ('password.changed', 'Password Changed'), ('sessions.ended', 'Sessions Ended'), ('account.disabled', 'Account Disabled'), ('account.enabled', 'Account Enabled'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level'), ('audit.deleted', 'Audit Deleted')], max_length=40),
        ),
        migrations.AlterField(
            model_name='platformevent',
            name='action',
            field=models.CharField(choices=[('agent.created', 'Agent Created'), ('agent.started', 'Agent Started'), ('agent.paused', 'Agent Paused'), ('agent.resumed', 'Agent Resumed'), ('agent.stopped', 'Agent Stopped'), ('agent.destroyed', 'Agent Destroyed'), ('agent.dormant', 'Agent Dormant'), ('template.changed', 'Template Changed'), ('operator.act', 'Operator Act'), ('denied', 'Denied'), ('boundary', 'Boundary'), ('truncated', 'Truncated'), ('memories.expired', 'Memories Expired'), ('memories.archived', 'Memories Archived'), ('memories.restored', 'Memories Restored'), ('memories.purged', 'Memories Purged'), ('memories.revised', 'Memories Revised'), ('self.changed', 'Self Changed'), ('buffer.cleared', 'Buffer Cleared'), ('tenant.created', 'Tenant Created'), ('member.added', 'Member Added'), ('member.removed', 'Member Removed'), ('signed_in', 'Signed In'), ('sign_in.failed', 'Sign In Failed'), ('sign_in.blocked', 'Sign In Blocked'), ('password.changed', 'Password Changed'), ('sessions.ended', 'Sessions Ended'), ('account.disabled', 'Account Disabled'), ('account.enabled', 'Account Enabled'), ('cross_tenant.view', 'Cross Tenant View'), ('health.changed', 'Health Changed'), ('budget.level', 'Budget Level'), ('audit.deleted', 'Audit Deleted')], max_length=40),
        ),
    ]
