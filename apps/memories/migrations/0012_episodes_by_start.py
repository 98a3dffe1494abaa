"""Index episodes by their start: each memory changes the end of its episode, and an update of no indexed column touches no index."""

from __future__ import annotations

from django.db import migrations, models

_INDEXES = {
    'memories_episode_recent': models.Index(fields=['tenant', 'agent', '-started_at'], name='memories_episode_recent'),
    'memories_episode_session': models.Index(
        fields=['tenant', 'agent', 'session', '-started_at'], name='memories_episode_session'
    ),
    'memories_episode_unembedded': models.Index(
        condition=models.Q(embedding__isnull=True, summarized_at__isnull=False),
        fields=['tenant', 'started_at'],
        name='memories_episode_unembedded',
    ),
    'memories_episode_open': models.Index(
        condition=models.Q(ended_at__isnull=True), fields=['tenant', 'started_at'], name='memories_episode_open'
    ),
}


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0011_partial_indexes'),
    ]

    operations = [
        *(migrations.RemoveIndex(model_name='episode', name=name) for name in _INDEXES),
        *(migrations.AddIndex(model_name='episode', index=index) for index in _INDEXES.values()),
        # Room for a version of a row on its own page.
        migrations.RunSQL('ALTER TABLE memories_episode SET (fillfactor = 70)', 'ALTER TABLE memories_episode RESET (fillfactor)'),
    ]
