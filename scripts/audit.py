"""Audit the locked packages: known vulnerabilities, licences, and a bill of materials (CycloneDX JSON).

Usage: python -m scripts.audit [--sbom FILE] [--json] [--database URL]
Exit codes: 0 nothing found; 1 a vulnerability, or a runtime package without a known licence or under one whose terms reach
Arbor; 2 wrong usage; 3 the database of vulnerabilities could not be reached, everything else was done.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections import defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from enum import IntEnum, StrEnum
from importlib import metadata
from pathlib import Path
from typing import Any
from uuid import uuid4

import httpx

from arbor.version import VERSION

ROOT = Path(__file__).resolve().parent.parent
RUNTIME_LOCK, FULL_LOCK = ROOT / "requirements-runtime.lock", ROOT / "requirements.lock"
#: A public database of known vulnerabilities, which answers for many packages in one request.
DATABASE = "https://api.osv.dev"
_TIMEOUT_S = 30.0
_LOCKED = re.compile(r"^([A-Za-z0-9][A-Za-z0-9._-]*)==([^\s;\\]+)", re.MULTILINE)
#: Licences whose terms reach a program that uses the package. The LGPL's do not.
_COPYLEFT = re.compile(r"\b(AGPL|GPL|Affero|GNU General Public)", re.IGNORECASE)
_LIBRARY = re.compile(r"LGPL|Lesser|Library General Public", re.IGNORECASE)
_CLASSIFIER = "License :: "
#: The most characters of the first line of a licence's text that are taken as its name.
_LONGEST_NAME = 100


class AuditCode(IntEnum):
    """The exit codes."""

    CLEAN = 0
    FOUND = 1
    UNREACHABLE = 3


class Scope(StrEnum):
    """The role of a package in an installation, in CycloneDX's words."""

    RUNTIME = "required"
    DEVELOPMENT = "excluded"


class DatabaseUnreachable(Exception):
    """The database of vulnerabilities did not answer."""


@dataclass(frozen=True, kw_only=True)
class LockedPackage:
    """A package of the lock file."""

    name: str
    version: str
    scope: Scope
    #: The licence's name; empty where the package is not installed here or does not say.
    licence: str
    installed: bool

    @property
    def purl(self) -> str:
        """The package's URL, as bills of materials name it."""
        return f"pkg:pypi/{self.name}@{self.version}"


@dataclass(frozen=True, kw_only=True)
class Vulnerability:
    """A known vulnerability of a locked package."""

    id: str
    package: str
    version: str
    summary: str = ""


def locked_packages(full: str, runtime: str) -> list[LockedPackage]:
    """Return the packages of the lock files' texts; every installation has those of the runtime's file."""
    needed = {_normalized(name) for name, _ in _LOCKED.findall(runtime)}
    packages = []
    for name, version in sorted(set(_LOCKED.findall(full)) | set(_LOCKED.findall(runtime))):
        scope = Scope.RUNTIME if _normalized(name) in needed else Scope.DEVELOPMENT
        licence = licence_of(name)
        packages.append(
            LockedPackage(
                name=_normalized(name),
                version=version,
                scope=scope,
                licence=licence or "",
                installed=licence is not None,
            )
        )
    return packages


def licence_of(name: str) -> str | None:
    """Return the licence that an installed package names, empty if it names none; None if it is not installed."""
    try:
        found = metadata.metadata(name)
    except metadata.PackageNotFoundError:
        return None
    expression = found.get("License-Expression")
    if expression:
        return str(expression)
    classifiers = [
        value.rpartition(" :: ")[2]
        for value in found.get_all("Classifier", [])
        if value.startswith(_CLASSIFIER) and value != "License :: OSI Approved"
    ]
    text = (found.get("License") or "").strip()
    if classifiers:
        return " AND ".join(sorted(set(classifiers)))
    return text.partition("\n")[0][:_LONGEST_NAME] if text.upper() != "UNKNOWN" else ""


def licence_findings(packages: Iterable[LockedPackage]) -> list[str]:
    """Return the problems of the licences of the runtime's packages that are installed here."""
    findings = []
    for package in packages:
        if package.scope is not Scope.RUNTIME or not package.installed:
            continue
        if not package.licence:
            findings.append(f"{package.name} {package.version} names no licence")
        elif all(_COPYLEFT.search(_LIBRARY.sub("", choice)) for choice in package.licence.split(" OR ")):
            findings.append(f"{package.name} {package.version} is under {package.licence}")
    return findings


def known_vulnerabilities(
    packages: Sequence[LockedPackage], *, client: httpx.Client, database: str
) -> list[Vulnerability]:
    """Return the vulnerabilities that the database knows of the packages. Raises DatabaseUnreachable."""
    queries = [
        {"package": {"name": package.name, "ecosystem": "PyPI"}, "version": package.version}
        for package in packages
    ]
    results = _answer(client, "POST", f"{database}/v1/querybatch", {"queries": queries}).get("results")
    if not isinstance(results, list) or len(results) != len(packages):
        raise DatabaseUnreachable(f"{database} answered something else than one result for each package")
    found = []
    for package, result in zip(packages, results, strict=True):
        for row in (result or {}).get("vulns", []):
            details = _answer(client, "GET", f"{database}/v1/vulns/{row['id']}")
            found.append(
                Vulnerability(
                    id=row["id"],
                    package=package.name,
                    version=package.version,
                    summary=str(details.get("summary", "")),
                )
            )
    return found


def _answer(client: httpx.Client, method: str, url: str, body: Any = None) -> dict[str, Any]:
    try:
        response = client.request(method, url, json=body)
        response.raise_for_status()
        answer = response.json()
    except (httpx.HTTPError, ValueError) as error:
        raise DatabaseUnreachable(f"{url}: {error or type(error).__name__}") from error
    if not isinstance(answer, dict):
        raise DatabaseUnreachable(f"{url} answered {type(answer).__name__}, not an object")
    return answer


def bill_of_materials(
    packages: Iterable[LockedPackage],
    vulnerabilities: Iterable[Vulnerability],
    *,
    version: str,
    now: datetime,
) -> dict[str, Any]:
    """Return the bill of materials as CycloneDX 1.6 defines it."""
    purls = {package.name: package.purl for package in packages}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "serialNumber": f"urn:uuid:{uuid4()}",
        "version": 1,
        "metadata": {
            "timestamp": now.astimezone(UTC).isoformat(timespec="seconds").replace("+00:00", "Z"),
            "component": {"type": "application", "bom-ref": "arbor", "name": "arbor", "version": version},
        },
        "components": [_component(package) for package in packages],
        "vulnerabilities": [
            {
                "id": row.id,
                "description": row.summary,
                "affects": [{"ref": purls[row.package]}],
            }
            for row in vulnerabilities
        ],
    }


def _component(package: LockedPackage) -> dict[str, Any]:
    component = {
        "type": "library",
        "bom-ref": package.purl,
        "name": package.name,
        "version": package.version,
        "scope": package.scope.value,
        "purl": package.purl,
    }
    licence = [{"license": {"name": package.licence}}] if package.licence else []
    return {**component, "licenses": licence} if licence else component


def _normalized(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def audit(
    *, client: httpx.Client, database: str, sbom: Path, full: str, runtime: str
) -> tuple[AuditCode, dict[str, Any]]:
    """Audit the packages of the lock files' texts, and write the bill of materials; return the code and the report."""
    packages = locked_packages(full, runtime)
    licences = licence_findings(packages)
    vulnerabilities: list[Vulnerability] = []
    unreachable = ""
    try:
        vulnerabilities = known_vulnerabilities(packages, client=client, database=database)
    except DatabaseUnreachable as error:
        unreachable = str(error)
    bill = bill_of_materials(packages, vulnerabilities, version=VERSION, now=datetime.now(UTC))
    sbom.write_text(json.dumps(bill, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    names: dict[str, list[str]] = defaultdict(list)
    for package in packages:
        names[package.licence or ("unknown" if package.installed else "not installed here")].append(
            package.name
        )
    report = {
        "packages": len(packages),
        "vulnerabilities": [asdict(row) for row in vulnerabilities],
        "unreachable": unreachable,
        "licence_findings": licences,
        "licences": dict(sorted(names.items())),
        "sbom": str(sbom),
    }
    if vulnerabilities or licences:
        return AuditCode.FOUND, report
    return (AuditCode.UNREACHABLE if unreachable else AuditCode.CLEAN), report


def as_text(report: dict[str, Any]) -> str:
    """Return the report for people."""
    lines = [f"{report['packages']} locked packages; bill of materials in {report['sbom']}", "", "Licences"]
    lines += [f"  {licence}: {', '.join(names)}" for licence, names in report["licences"].items()]
    lines += [
        "",
        "Findings about licences",
        *(f"  {text}" for text in report["licence_findings"] or ["none"]),
    ]
    lines += ["", "Known vulnerabilities"]
    if report["unreachable"]:
        lines.append(f"  NOT CHECKED: the database could not be reached ({report['unreachable']})")
    elif not report["vulnerabilities"]:
        lines.append("  none")
    lines += [
        f"  {row['package']} {row['version']}: {row['id']} {row['summary']}".rstrip()
        for row in report["vulnerabilities"]
    ]
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the audit and return the exit code."""
    parser = argparse.ArgumentParser(prog="make audit", description="Audit the locked packages.")
    parser.add_argument("--sbom", type=Path, default=ROOT / "build" / "sbom.cdx.json", metavar="FILE")
    parser.add_argument("--json", action="store_true", help="print one JSON object")
    parser.add_argument("--database", default=DATABASE, metavar="URL", help="an OSV database  [%(default)s]")
    chosen = parser.parse_args(arguments)
    chosen.sbom.parent.mkdir(parents=True, exist_ok=True)
    with httpx.Client(timeout=_TIMEOUT_S) as client:
        code, report = audit(
            client=client,
            database=chosen.database.rstrip("/"),
            sbom=chosen.sbom,
            full=FULL_LOCK.read_text(encoding="utf-8"),
            runtime=RUNTIME_LOCK.read_text(encoding="utf-8"),
        )
    print(json.dumps(report, ensure_ascii=False) if chosen.json else as_text(report))
    return code


if __name__ == "__main__":
    sys.exit(main())
