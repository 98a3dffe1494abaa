"""`arbor doctor`: is everything as it should be, and if not, what to do."""

from __future__ import annotations

from dataclasses import asdict

import click
from django.db import connections

from config.cli.checks.finding import Verdict
from config.cli.diagnosis import diagnose
from config.cli.output import json_of
from config.cli.printable import printable

_MARKS = {
    Verdict.OK: click.style("✓", fg="green"),
    Verdict.WARN: click.style("!", fg="yellow"),
    Verdict.FAIL: click.style("✗", fg="red"),
}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_context
def doctor(context: click.Context, as_json: bool) -> None:
    """Check interpreter, database, roles, vectors, keys, beat, workers, broker, model and embedder. Exit code 1: something fails."""
    findings = []
    for finding in diagnose():
        findings.append(finding)
        if not as_json:
            click.echo(f"{_MARKS[finding.verdict]} {finding.check}: {printable(finding.detail)}")
            if finding.remedy:
                click.echo(f"    {click.style('→', dim=True)} {printable(finding.remedy)}")
    connections.close_all()
    failed = any(finding.verdict is Verdict.FAIL for finding in findings)
    if as_json:
        checks = [asdict(finding) for finding in findings]
        click.echo(json_of({"healthy": not failed, "checks": checks}, indent=2))
    if failed:
        context.exit(1)
