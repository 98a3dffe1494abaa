from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("tenants", "0002_mind_at_work"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="membership",
            options={
                "base_manager_name": "objects",
                "default_manager_name": "objects",
                "verbose_name": "member",
            },
        ),
    ]
