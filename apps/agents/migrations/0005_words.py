from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [
        ("agents", "0004_rhythm"),
    ]

    operations = [
        migrations.AlterModelOptions(
            name="agentpolicy",
            options={
                "base_manager_name": "objects",
                "verbose_name": "policy",
                "verbose_name_plural": "policies",
            },
        ),
        migrations.AlterModelOptions(
            name="builtintemplate",
            options={"ordering": ["name"], "verbose_name": "built-in template"},
        ),
    ]
