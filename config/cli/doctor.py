"""`arbor doctor`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

import json
from dataclasses import asdict

import click
from django.db import connections

from config.cli.checks.finding import Verdict
from config.cli.diagnosis import diagnose

_MARKS = {
    Verdict.OK: click.style("✓", fg="green"),
    Verdict.WARN: click.style("!", fg="yellow"),
    Verdict.FAIL: click.style("✗", fg="red"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check database, roles, vectors, keys, beat, workers, broker, model and embedder. Exit code 1: something fails."""
    findings = []
    for finding in diagnose():
        findings.append(finding)
        if not as_json:
            click.echo(f"{_MARKS[finding.verdict]} {finding.check}: {finding.detail}")
            if finding.remedy:
                click.echo(f"    {click.style('→', dim=True)} {finding.remedy}")
    connections.close_all()
    failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    if as_json:
        click.echo(
            json.dumps({"healthy": not failed, "checks": [asdict(finding) for finding in findings]}, indent=2)
        )
    if failed:
        context.exit(1)
