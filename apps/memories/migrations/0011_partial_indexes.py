from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('memories', '0010_pending_upkeep'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='memory',
            index=models.Index(condition=models.Q(('session', ''), _negated=True), fields=['tenant', 'agent', 'session', 'position'], name='memories_memory_of_session'),
        ),
        migrations.RemoveIndex(
            model_name='memory',
            name='memories_memory_session',
        ),
        migrations.AddIndex(
            model_name='concept',
            index=models.Index(condition=models.Q(('parent__isnull', False)), fields=['tenant', 'parent'], name='memories_concept_narrower'),
        ),
        migrations.RemoveIndex(
            model_name='concept',
            name='memories_concept_by_parent',
        ),
    ]
