from django.db import migrations

_STORAGE = """
-- A request lies apart from its row, so that the updates of lease and reply do not write it to the log again.
ALTER TABLE calls_externalcall SET (toast_tuple_target = 1400);
"""


class Migration(migrations.Migration):

    dependencies = [
        ('calls', '0005_lists_by_agent'),
    ]

    operations = [
        migrations.RunSQL(_STORAGE, "ALTER TABLE calls_externalcall RESET (toast_tuple_target)"),
    ]
