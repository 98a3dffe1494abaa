"""How PostgreSQL keeps the tables that change most."""

from __future__ import annotations

from django.db import migrations


class Migration(migrations.Migration):
    dependencies = [("heartbeats", "0001_initial")]

    operations = [
        migrations.RunSQL(
            # The due time is indexed, so no update of it is HOT: vacuum by count, not by share of a large table.
            "ALTER TABLE heartbeats_heartbeatschedule SET (fillfactor = 80, autovacuum_vacuum_scale_factor = 0,"
            " autovacuum_vacuum_threshold = 2000)",
            "ALTER TABLE heartbeats_heartbeatschedule RESET (fillfactor, autovacuum_vacuum_scale_factor,"
            " autovacuum_vacuum_threshold)",
        ),
        migrations.RunSQL(
            "ALTER TABLE heartbeats_heartbeat SET (fillfactor = 70)",
            "ALTER TABLE heartbeats_heartbeat RESET (fillfactor)",
        ),
    ]
