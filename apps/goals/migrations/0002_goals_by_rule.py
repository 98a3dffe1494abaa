"""Find the goals of an agent that a rule created."""

from django.db import migrations, models


class Migration(migrations.Migration):

    dependencies = [
        ('goals', '0001_tables'),
    ]

    operations = [
        migrations.AddIndex(
            model_name='goal',
            index=models.Index(condition=models.Q(('rule__gt', '')), fields=['tenant', 'agent', 'rule', '-created_at'], name='goals_goal_by_rule'),
        ),
    ]
