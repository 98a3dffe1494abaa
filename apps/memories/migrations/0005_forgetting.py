"""When each chore of forgetting was last done for an agent, what it might forget, and when jobs last ran."""

from __future__ import annotations

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0002_storage"),
        ("memories", "0004_mind_index"),
        ("tenants", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="JobRun",
            fields=[
                ("name", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("ended_at", models.DateTimeField()),
                ("seconds", models.FloatField()),
                ("succeeded_at", models.DateTimeField(null=True)),
                ("done", models.IntegerField(default=0)),
                ("failed", models.IntegerField(default=0)),
                ("error", models.CharField(blank=True, max_length=200)),
            ],
        ),
        migrations.AddField(
            model_name="mind",
            name="cleaned_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddField(
            model_name="mind",
            name="counted_at",
            field=models.DateTimeField(null=True),
        ),
        migrations.AddIndex(
            model_name="memory",
            index=models.Index(
                condition=models.Q(("status", "active")),
                fields=["tenant", "agent", "importance", "created_at", "id"],
                include=("type", "retention"),
                name="memories_memory_forgettable",
            ),
        ),
        migrations.AddIndex(
            model_name="mind",
            index=models.Index(fields=["tenant", "cleaned_at"], name="memories_mind_cleaned"),
        ),
        migrations.AddIndex(
            model_name="mind",
            index=models.Index(fields=["tenant", "counted_at"], name="memories_mind_counted"),
        ),
    ]
