from django.db import migrations

# A request fits into a new row, but not beside its reply: at the usual 2 KB, ending a call moved the request out of the row, and
# wrote it to the log a second time. Rows of older versions stay as they are.
_STORAGE = "ALTER TABLE calls_externalcall SET (toast_tuple_target = 5000)"
_BEFORE = "ALTER TABLE calls_externalcall RESET (toast_tuple_target)"


class Migration(migrations.Migration):

    dependencies = [
        ('calls', '0005_lists_by_agent'),
    ]

    operations = [migrations.RunSQL(_STORAGE, _BEFORE)]
