"""`make audit` with a fake database of vulnerabilities."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

import httpx
import pytest

from arbor.version import VERSION
from scripts import audit
from scripts.audit import AuditCode, LockedPackage, Scope, licence_of

ROOT = Path(__file__).parents[2]
RUNTIME = "good-package==1.0 \\\n    --hash=sha256:aa\n    # via arbor\nBad.Package==2.0 ; sys_platform == 'linux'\n"
FULL = RUNTIME + "dev-package==3.0\n"
LICENCES = {"good-package": "MIT", "Bad.Package": "BSD-3-Clause", "dev-package": "GPL-3.0-only"}

type Answer = Callable[[httpx.Request], httpx.Response]


@pytest.fixture(autouse=True)
def _licences(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(audit, "licence_of", LICENCES.get)


def run(tmp_path: Path, answer: Answer) -> tuple[AuditCode, dict[str, Any]]:
    with httpx.Client(transport=httpx.MockTransport(answer)) as client:
        return audit.audit(
            client=client,
            database="https://db.example",
            sbom=tmp_path / "sbom.json",
            full=FULL,
            runtime=RUNTIME,
        )


def database(request: httpx.Request) -> httpx.Response:
    """Answer as a database that knows one vulnerability, of `bad-package` 2.0."""
    if request.url.path == "/v1/querybatch":
        asked = [
            (query["package"]["name"], query["version"]) for query in json.loads(request.content)["queries"]
        ]
        vulnerable = {("bad-package", "2.0"): {"vulns": [{"id": "X-1", "modified": "2026-01-01"}]}}
        return httpx.Response(200, json={"results": [vulnerable.get(package, {}) for package in asked]})
    assert request.url.path == "/v1/vulns/X-1"
    return httpx.Response(200, json={"id": "X-1", "summary": "Reads beyond the end."})


def clean(request: httpx.Request) -> httpx.Response:
    count = len(json.loads(request.content)["queries"])
    return httpx.Response(200, json={"results": [{}] * count})


def away(request: httpx.Request) -> httpx.Response:
    raise httpx.ConnectError("no route", request=request)


def test_a_known_vulnerability_is_found(tmp_path: Path) -> None:
    code, report = run(tmp_path, database)
    assert code is AuditCode.FOUND
    expected = {"id": "X-1", "package": "bad-package", "version": "2.0", "summary": "Reads beyond the end."}
    assert report["vulnerabilities"] == [expected]
    assert "bad-package 2.0: X-1 Reads beyond the end." in audit.as_text(report)


def test_packages_without_findings_are_clean(tmp_path: Path) -> None:
    code, report = run(tmp_path, clean)
    assert (code, report["packages"], report["unreachable"]) == (AuditCode.CLEAN, 3, "")
    assert report["licences"] == {
        "BSD-3-Clause": ["bad-package"],
        "GPL-3.0-only": ["dev-package"],
        "MIT": ["good-package"],
    }


@pytest.mark.parametrize(
    "answer",
    [
        away,
        lambda _: httpx.Response(503),
        lambda _: httpx.Response(200, text="<html>"),
        lambda _: httpx.Response(200, json=[]),
        lambda _: httpx.Response(200, json={"results": []}),
    ],
    ids=["away", "error", "no-json", "no-object", "too-few"],
)
def test_an_unreachable_database_has_a_code_of_its_own(tmp_path: Path, answer: Answer) -> None:
    code, report = run(tmp_path, answer)
    assert code is AuditCode.UNREACHABLE
    assert report["unreachable"].startswith("https://db.example")
    assert "NOT CHECKED" in audit.as_text(report)
    assert len(json.loads((tmp_path / "sbom.json").read_text())["components"]) == 3


def test_the_bill_of_materials_lists_every_package(tmp_path: Path) -> None:
    run(tmp_path, database)
    bill = json.loads((tmp_path / "sbom.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"], bill["version"]) == ("CycloneDX", "1.6", 1)
    assert bill["metadata"]["component"]["version"] == VERSION
    assert re.fullmatch(r"urn:uuid:[0-9a-f-]{36}", bill["serialNumber"])
    assert datetime.fromisoformat(bill["metadata"]["timestamp"]).tzinfo == UTC
    components = {row["name"]: (row["version"], row["scope"], row["licenses"]) for row in bill["components"]}
    assert components == {
        "bad-package": ("2.0", "required", [{"license": {"name": "BSD-3-Clause"}}]),
        "dev-package": ("3.0", "excluded", [{"license": {"name": "GPL-3.0-only"}}]),
        "good-package": ("1.0", "required", [{"license": {"name": "MIT"}}]),
    }
    (vulnerability,) = bill["vulnerabilities"]
    assert vulnerability["affects"] == [{"ref": "pkg:pypi/bad-package@2.0"}]


@pytest.mark.parametrize(
    ("licence", "found"),
    [
        ("", True),
        ("GPL-3.0-or-later", True),
        ("GNU Affero General Public License v3", True),
        ("LGPL-3.0-only", False),
        ("GNU Lesser General Public License v2 or later (LGPLv2+)", False),
        ("MPL-1.1 OR GPL-2.0-only OR LGPL-2.1-or-later", False),
        ("MIT", False),
    ],
)
def test_unknown_and_copyleft_licences_are_findings(licence: str, found: bool) -> None:
    package = LockedPackage(name="x", version="1", scope=Scope.RUNTIME, licence=licence, installed=True)
    assert bool(audit.licence_findings([package])) is found


def test_licences_of_absent_and_development_packages_are_not_judged() -> None:
    absent = LockedPackage(name="x", version="1", scope=Scope.RUNTIME, licence="", installed=False)
    developers = LockedPackage(name="x", version="1", scope=Scope.DEVELOPMENT, licence="GPL", installed=True)
    assert audit.licence_findings([absent, developers]) == []


def test_the_real_lock_files_are_read() -> None:
    packages = audit.locked_packages(audit.FULL_LOCK.read_text(), audit.RUNTIME_LOCK.read_text())
    scopes = {package.name: package.scope for package in packages}
    assert scopes["django"] is Scope.RUNTIME
    assert scopes["pytest"] is Scope.DEVELOPMENT
    (django,) = (package for package in packages if package.name == "django")
    assert django.version == metadata.version("django")


def test_the_command_writes_its_files_and_returns_the_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    client = httpx.Client
    monkeypatch.setattr(
        httpx, "Client", lambda **options: client(transport=httpx.MockTransport(away), **options)
    )
    sbom = tmp_path / "new" / "sbom.json"
    assert audit.main(["--sbom", str(sbom), "--json", "--database", "https://db.example/"]) == 3
    printed = json.loads(capsys.readouterr().out)
    assert printed["unreachable"] == "https://db.example/v1/querybatch: no route"
    assert sbom.exists()


def test_no_other_target_runs_the_audit() -> None:
    makefile = (ROOT / "Makefile").read_text()
    targets = dict(re.findall(r"^([a-z-]+):(.*(?:\n\t.*)*)", makefile, re.MULTILINE))
    assert {"test", "check", "rules"} <= set(targets)
    assert [name for name, recipe in targets.items() if re.search(r"\baudit\b", recipe)] == ["audit"]


@pytest.mark.parametrize(("name", "licence"), [("django", "BSD-3-Clause"), ("no-such-package", None)])
def test_an_installed_package_names_its_licence(name: str, licence: str | None) -> None:
    assert licence_of(name) == licence
