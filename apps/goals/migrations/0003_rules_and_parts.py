from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("goals", "0002_mind_at_work")]

    operations = [
        migrations.AddField(
            model_name="goal",
            name="fraction_by_hand",
            field=models.BooleanField(default=False, db_default=False),
        ),
        migrations.AddField(
            model_name="goal", name="heartbeat_id", field=models.UUIDField(blank=True, null=True)
        ),
        migrations.AddField(
            model_name="goal",
            name="rule",
            field=models.CharField(blank=True, default="", db_default="", max_length=12),
        ),
        migrations.AddIndex(
            model_name="goal",
            index=models.Index(
                condition=models.Q(("parent__isnull", False)),
                fields=["tenant", "parent"],
                name="goals_goal_by_parent",
            ),
        ),
        migrations.AddIndex(
            model_name="plan",
            index=models.Index(fields=["tenant", "goal", "-created_at"], name="goals_plan_by_goal"),
        ),
    ]
