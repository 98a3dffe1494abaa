from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("contacts", "0003_tries_before"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="chatmessage",
            options={
                "base_manager_name": "objects",
                "ordering": ["at"],
                "verbose_name": "turn of a conversation",
                "verbose_name_plural": "turns of conversations",
            },
        ),
        migrations.AlterModelOptions(
            name="chatsession",
            options={
                "base_manager_name": "objects",
                "ordering": ["-started_at"],
                "verbose_name": "conversation",
            },
        ),
    ]
