"""What moving to another embedder needs, and which embedders fail."""

from __future__ import annotations

import pgvector.django.halfvec
import pgvector.django.sparsevec
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [("memories", "0005_forgetting")]

    operations = [
        migrations.CreateModel(
            name="EmbedderFault",
            fields=[
                ("embedding_model", models.CharField(max_length=100, primary_key=True, serialize=False)),
                ("failures", models.PositiveIntegerField()),
                ("since", models.DateTimeField()),
                ("retry_at", models.DateTimeField()),
                ("error", models.CharField(max_length=300)),
            ],
        ),
        migrations.AlterField(
            model_name="nextembedding",
            name="embedding",
            field=pgvector.django.halfvec.HalfVectorField(null=True),
        ),
        migrations.AddField(
            model_name="nextembedding",
            name="lexical",
            field=pgvector.django.sparsevec.SparseVectorField(dimensions=1000000000, null=True),
        ),
        migrations.AddField(
            model_name="episode",
            name="embedding_model",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddField(
            model_name="bufferitem",
            name="embedding_model",
            field=models.CharField(blank=True, db_default="", max_length=100),
        ),
        migrations.AddIndex(
            model_name="episode",
            index=models.Index(
                condition=models.Q(("embedding__isnull", True), ("summarized_at__isnull", False)),
                fields=["tenant", "last_at"],
                name="memories_episode_unembedded",
            ),
        ),
        migrations.AddIndex(
            model_name="bufferitem",
            index=models.Index(
                condition=models.Q(("embedding__isnull", True)),
                fields=["tenant", "created_at"],
                name="memories_buffer_unembedded",
            ),
        ),
    ]
