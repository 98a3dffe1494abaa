"""Find the episodes of an agent that have no summary."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0001_tables'),
    ]

    operations = [
        # Open episodes are found by the constraint that a session has one at most.
        migrations.RemoveIndex(
            model_name='episode',
            name='memories_episode_open',
        ),
        migrations.RemoveIndex(
            model_name='episode',
            name='memories_episode_unsummarized',
        ),
        migrations.AddIndex(
            model_name='episode',
            index=models.Index(condition=models.Q(('ended_at__isnull', False), ('summarized_at__isnull', True)), fields=['tenant', 'agent', 'ended_at'], name='memories_episode_unsummarized'),
        ),
    ]
