"""Find breaches by agents, and acts on the installation by their kind."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('audit', '0001_tables'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='auditevent',
            index=models.Index(condition=models.Q(('action__in', ['reflex', 'request.refused'])), fields=['tenant', 'agent_id', '-at'], name='audit_event_breach'),
        ),
        migrations.AddIndex(
            model_name='platformevent',
            index=models.Index(fields=['action', 'id'], name='audit_platform_by_action'),
        ),
    ]
