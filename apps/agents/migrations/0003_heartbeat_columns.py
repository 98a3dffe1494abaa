"""Columns that count heartbeats, named by the glossary; no row is rewritten."""

from django.db import migrations


class Migration(migrations.Migration):

    dependencies = [
        ('agents', '0002_references'),
    ]

    operations = [
        migrations.RenameField(model_name='agentstate', old_name='beats', new_name='heartbeats'),
        migrations.RenameField(model_name='agentstate', old_name='idle_beats', new_name='idle_heartbeats'),
        migrations.RenameField(model_name='agentstate', old_name='stale_beats', new_name='stale_heartbeats'),
        migrations.RenameField(model_name='agentstate', old_name='last_beat_at', new_name='last_heartbeat_at'),
        migrations.RenameField(model_name='agentpolicy', old_name='daily_beats', new_name='daily_heartbeats'),
        migrations.RenameIndex(model_name='percept', old_name='heartbeats_percept_by_beat', new_name='heartbeats_percept_heartbeat'),
    ]
