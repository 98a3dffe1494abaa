from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("goals", "0003_rules_and_parts"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="goalmemorylink",
            options={
                "base_manager_name": "objects",
                "verbose_name": "goal memory",
                "verbose_name_plural": "goal memories",
            },
        ),
        migrations.AlterModelOptions(
            name="planstep",
            options={"base_manager_name": "objects", "ordering": ["position"], "verbose_name": "step"},
        ),
    ]
