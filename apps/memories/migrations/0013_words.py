from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("memories", "0012_mind_at_work"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="bufferitem",
            options={"base_manager_name": "objects", "verbose_name": "held thing"},
        ),
        migrations.AlterModelOptions(
            name="cluster",
            options={"base_manager_name": "objects", "verbose_name": "theme"},
        ),
        migrations.AlterModelOptions(
            name="clustermember",
            options={
                "base_manager_name": "objects",
                "verbose_name": "member of a theme",
                "verbose_name_plural": "members of themes",
            },
        ),
        migrations.AlterModelOptions(
            name="clusterrelation",
            options={
                "base_manager_name": "objects",
                "verbose_name": "relation of themes",
                "verbose_name_plural": "relations of themes",
            },
        ),
        migrations.AlterModelOptions(
            name="codesnippet",
            options={
                "base_manager_name": "objects",
                "ordering": ["-created_at"],
                "verbose_name": "piece of code",
                "verbose_name_plural": "pieces of code",
            },
        ),
        migrations.AlterModelOptions(
            name="edge",
            options={"base_manager_name": "objects", "verbose_name": "relation"},
        ),
        migrations.AlterModelOptions(
            name="embeddingcacheentry",
            options={"base_manager_name": "objects", "verbose_name": "cached embedding"},
        ),
        migrations.AlterModelOptions(
            name="jobrun",
            options={"verbose_name": "job"},
        ),
        migrations.AlterModelOptions(
            name="memoryaccess",
            options={
                "base_manager_name": "objects",
                "verbose_name": "memory access",
                "verbose_name_plural": "memory accesses",
            },
        ),
        migrations.AlterModelOptions(
            name="upkeep",
            options={
                "base_manager_name": "objects",
                "verbose_name": "memory in upkeep",
                "verbose_name_plural": "memories in upkeep",
            },
        ),
    ]
