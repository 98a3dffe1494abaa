"""The numbers of heartbeats, named by the glossary; no row is rewritten, and no index is built anew."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('selves', '0002_rejected_proposals'),
    ]

    operations = [
        migrations.RenameField(model_name='peermodel', old_name='last_tick', new_name='last_heartbeat_number'),
        # The index follows its column in the database; only Django's state of it names the field.
        migrations.SeparateDatabaseAndState(
            state_operations=[migrations.RemoveIndex(model_name='experience', name='selves_experience_by_tick')],
        ),
        migrations.RenameField(model_name='experience', old_name='tick', new_name='heartbeat_number'),
        migrations.SeparateDatabaseAndState(
            database_operations=[
                migrations.RunSQL(
                    'ALTER INDEX selves_experience_by_tick RENAME TO selves_experience_by_heartbeat',
                    reverse_sql='ALTER INDEX selves_experience_by_heartbeat RENAME TO selves_experience_by_tick',
                ),
            ],
            state_operations=[
                migrations.AddIndex(
                    model_name='experience',
                    index=models.Index(fields=['tenant', 'agent', '-heartbeat_number'], name='selves_experience_by_heartbeat'),
                ),
            ],
        ),
    ]
