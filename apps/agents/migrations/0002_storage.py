"""How PostgreSQL keeps the row that changes at each heartbeat."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("agents", "0001_initial")]

    operations = [
        migrations.RunSQL(
            "ALTER TABLE agents_agentstate SET (fillfactor = 60)",
            "ALTER TABLE agents_agentstate RESET (fillfactor)",
        ),
    ]
