from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("selves", "0003_peers_by_peer"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="beliefevidence",
            options={
                "base_manager_name": "objects",
                "verbose_name": "piece of evidence",
                "verbose_name_plural": "pieces of evidence",
            },
        ),
        migrations.AlterModelOptions(
            name="identityaspect",
            options={"base_manager_name": "objects", "verbose_name": "aspect"},
        ),
        migrations.AlterModelOptions(
            name="peermodel",
            options={"base_manager_name": "objects", "verbose_name": "peer"},
        ),
        migrations.AlterModelOptions(
            name="selfchange",
            options={
                "base_manager_name": "objects",
                "ordering": ["-at"],
                "verbose_name": "change of self",
                "verbose_name_plural": "changes of self",
            },
        ),
    ]
