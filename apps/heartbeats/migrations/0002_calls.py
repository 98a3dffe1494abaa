"""Hand model calls, their ledger and daily usage over to the app `calls`, which names the renamed tables."""

from django.db import migrations

_RENAME = """
DO $$
DECLARE
    named record;
BEGIN
    -- Heartbeats write their calls themselves, in one transaction: a reference would lock the heartbeat's row for each call.
    FOR named IN SELECT conname FROM pg_constraint WHERE conrelid = 'heartbeats_externalcall'::regclass
        AND confrelid = 'heartbeats_heartbeat'::regclass
    LOOP
        EXECUTE format('ALTER TABLE heartbeats_externalcall DROP CONSTRAINT %I', named.conname);
    END LOOP;
    ALTER TABLE heartbeats_externalcall RENAME TO calls_externalcall;
    ALTER TABLE heartbeats_ledgerentry RENAME TO calls_ledgerentry;
    ALTER TABLE heartbeats_dailyusage RENAME TO calls_dailyusage;
    ALTER INDEX heartbeats_call_by_beat RENAME TO calls_by_heartbeat;
    ALTER INDEX heartbeats_errand_unfinished RENAME TO calls_maintenance_unfinished;
    ALTER INDEX heartbeats_errand_lease RENAME TO calls_maintenance_lease;
    ALTER INDEX heartbeats_errand_prompts RENAME TO calls_maintenance_prompts;
    ALTER INDEX heartbeats_errand_one_open RENAME TO calls_maintenance_one_open;
    ALTER TABLE calls_externalcall RENAME CONSTRAINT heartbeats_call_of_beat_or_errand TO calls_of_heartbeat_or_maintenance;
    ALTER INDEX heartbeats_ledger_by_time RENAME TO calls_ledger_by_time;
    ALTER INDEX heartbeats_usage_once RENAME TO calls_usage_once;
    ALTER INDEX heartbeats_usage_by_day RENAME TO calls_usage_by_day;
    ALTER INDEX heartbeats_usage_low RENAME TO calls_usage_low;
    -- Keys and references are named after their tables.
    FOR named IN SELECT conrelid::regclass AS relation, conname FROM pg_constraint
        WHERE conrelid IN ('calls_externalcall'::regclass, 'calls_ledgerentry'::regclass, 'calls_dailyusage'::regclass)
            AND conname LIKE 'heartbeats\\_%'
    LOOP
        EXECUTE format(
            'ALTER TABLE %s RENAME CONSTRAINT %I TO %I',
            named.relation, named.conname, regexp_replace(named.conname, '^heartbeats_', 'calls_')
        );
    END LOOP;
END $$
"""


class Migration(migrations.Migration):
    dependencies = [("heartbeats", "0001_squashed")]

    operations = [
        migrations.SeparateDatabaseAndState(
            database_operations=[migrations.RunSQL(_RENAME)],
            state_operations=[
                migrations.DeleteModel("DailyUsage"),
                migrations.DeleteModel("LedgerEntry"),
                migrations.DeleteModel("ExternalCall"),
            ],
        )
    ]
