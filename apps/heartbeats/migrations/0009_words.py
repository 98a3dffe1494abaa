from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("heartbeats", "0008_trace"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="dailyusage",
            options={
                "base_manager_name": "objects",
                "ordering": ["-day"],
                "verbose_name": "day of usage",
                "verbose_name_plural": "days of usage",
            },
        ),
        migrations.AlterModelOptions(
            name="externalcall",
            options={
                "base_manager_name": "objects",
                "ordering": ["requested_at"],
                "verbose_name": "model call",
            },
        ),
    ]
