"""Check the chains of seals over the audit log."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import islice

from django.conf import settings

from apps.fleet.audit_seals import all_chains, verify_audit
from arbor.errors import ArborError
from arbor.quotations import counted
from config.cli.checks.finding import Finding, fail, name_first, ok, warn

#: The latest seals of each chain that are verified, and the most chains.
SEALS_CHECKED = 20
_CHAINS_CHECKED = 50
#: The number of sealing periods, besides a minute, after which unsealed records are worth a warning.
_LATE_PERIODS = 10


def check_audit() -> Finding:
    """Check the latest seals of the first chains, and that committed records are sealed in time."""
    late = timedelta(minutes=1) + _LATE_PERIODS * settings.ARBOR_AUDIT_SEAL_PERIOD
    waiting: list[str] = []
    seals = 0
    for slug, chain in islice(all_chains(), _CHAINS_CHECKED):
        name = slug or "the installation"
        try:
            report = verify_audit(chain, latest=SEALS_CHECKED)
        except ArborError as error:
            return fail("audit chain", f"cannot be verified: {error}", "restore the master key")
        if report.broken_at is not None:
            return fail(
                "audit chain",
                f"of {name}: {report.broken_at}",
                "`arbor audit verify --all` lists all faults; docs/how-to/audit-log.md says what they mean",
            )
        seals += report.seals
        if report.unsealed_since is not None and report.unsealed_since < datetime.now(UTC) - late:
            waiting.append(f"{counted(report.unsealed_events, 'record')} of {name}")
    if waiting:
        return warn(
            "audit chain",
            f"not sealed for long: {name_first(waiting, most=3)}",
            "run `arbor up` or `arbor worker --queues outbox --pool threads`, with a master key",
        )
    intact = "the latest seal is intact" if seals == 1 else f"the latest {seals:,} seals are intact"
    return ok("audit chain", intact if seals else "nothing waits to be sealed")
