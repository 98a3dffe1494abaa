"""`arbor document`."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from django.db.models.functions import Now

from apps.knowledge.models import Document
from apps.knowledge.services.folders import (
    AddOptions,
    FileChange,
    FileResult,
    watch_folder,
    watching_actor,
)
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from config.cli import documents
from config.cli.checks.documents import check_documents
from config.cli.checks.finding import CheckVerdict, ok
from config.cli.kit import columns
from tests.factories.knowledge import DocumentFactory
from tests.integration.cli.conftest import Arbor
from tests.support.document_files import docx, pdf


@pytest.fixture(autouse=True)
def _captured(database: None) -> Iterator[None]:
    with captured():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a document of each kind, three broken documents, and files that are no documents."""
    folder = tmp_path / "docs"
    (folder / "hr").mkdir(parents=True)
    (folder / ".hidden").mkdir()
    for number in range(4):
        (folder / f"note-{number}.md").write_text(f"# Note {number}\n\nAbout topic {number}.")
    (folder / "hr" / "leave.docx").write_bytes(docx(("Heading1", "Leave"), ("", "Thirty days.")))
    (folder / "hr" / "travel.pdf").write_bytes(pdf(["Trains are booked by the office."]))
    (folder / "page.html").write_text("<title>Page</title><p>Hello.")
    (folder / "plain.txt").write_text("Plain words.")
    (folder / "broken.pdf").write_bytes(b"%PDF-1.4 broken")
    (folder / "broken.docx").write_bytes(b"no archive")
    (folder / "empty.md").write_text("")
    (folder / "program.exe").write_bytes(b"x")
    (folder / ".hidden" / "a.md").write_text("hidden")
    (folder / "outside.md").symlink_to("/etc/hostname")
    return folder


def test_mixed_documents_are_indexed_and_broken_ones_reported(
    arbor: Arbor, one_tenant: str, folder: Path
) -> None:
    ran = arbor("document", "add", str(folder), "--publish", "--category", "manuals", "--json")
    assert (ran.code, ran.json["added"], ran.json["refused"]) == (1, 10, 1)
    assert {broken["name"] for broken in ran.json["broken"]} == {"broken.pdf", "broken.docx", "empty.md"}
    listed = arbor("document", "list", "--indexing", "indexed", "--json").json["documents"]
    assert {document["name"] for document in listed} == {
        "hr/leave.docx",
        "hr/travel.pdf",
        "page.html",
        "plain.txt",
        *(f"note-{number}.md" for number in range(4)),
    }
    assert all(document["embedded"] == document["passages"] == 1 for document in listed)
    (failed, _) = arbor("document", "list", "--indexing", "failed", "--text", "broken", "--json").json[
        "documents"
    ]
    assert failed["error"]
    assert "None" not in arbor("document", "show", "broken.pdf").out
    repeated = arbor("document", "add", str(folder))
    assert (repeated.code, "10 unchanged" in repeated.out, "broken.pdf" in repeated.out) == (1, True, True)


def test_a_document_is_shown_changed_and_deleted(
    arbor: Arbor, one_tenant: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    note = folder / "note-1.md"
    assert "No documents" in arbor("document", "list").out
    assert "1 added" in arbor("document", "add", str(note)).out
    note.write_text("# Note 1\n\nAbout another topic.")
    assert arbor("document", "add", str(note), "--background", "--json").json["changed"] == 1
    assert arbor("document", "reindex", "note-1.md", "--json").json["indexing"] == "indexed"
    assert "by the workers" in arbor("document", "reindex", "note-1.md", "--background").out
    shown = arbor("document", "show", "note-1.md", "--json").json
    assert [version["number"] for version in shown["versions"]] == [2, 1]
    assert "Note 1" in arbor("document", "show", "note-1.md").out
    with monkeypatch.context() as patch:
        patch.setattr(columns, "MAX_ROWS", 1)
        assert "1 of 2" in arbor("document", "show", "note-1.md").out
        part = arbor("document", "show", "note-1.md", "--json").json
    assert ([version["number"] for version in part["versions"]], part["versions_total"]) == ([2], 2)
    assert arbor("document", "read", "note-1.md", "--start", "8", "--length", "5").out.strip() == "About"
    beyond = arbor("document", "read", "note-1.md", "--start", str(2**31 - 1))
    assert (beyond.code, beyond.out.strip()) == (0, "")
    assert "characters 0 to" in arbor("document", "passages", shown["id"], "-k", "5").out
    old = folder / "old.md"
    arbor("document", "download", "note-1.md", str(old), "--version", "1")
    assert "topic 1" in old.read_text()
    nowhere = arbor("document", "download", "note-1.md", str(folder / "nowhere" / "old.md"))
    assert (nowhere.code, "cannot be written: No such file" in nowhere.err) == (1, True)
    assert arbor("document", "file", "note-1.md", "notes", "--json").json["category"] == "notes"
    assert (
        arbor("document", "list", "--status", "draft", "--category", "notes", "--json").json["documents"]
        != []
    )
    assert arbor("document", "publish", "note-1.md", "--json").json["status"] == "published"
    assert arbor("document", "categories", "--json").json["categories"] == [
        {"category": "notes", "documents": 1, "published": 1}
    ]
    assert arbor("document", "withdraw", "note-1.md", "--json").json["status"] == "withdrawn"
    assert "is deleted" in arbor("document", "delete", "note-1.md").out
    missing = arbor("document", "show", "note-1.md")
    assert (missing.code, "'note-1.md'" in missing.err) == (1, True)


def test_brackets_in_names_are_listed_as_they_are_written(
    arbor: Arbor, one_tenant: str, tmp_path: Path
) -> None:
    (tmp_path / "[draft] rules.md").write_text("# [draft] Rules\n\nBoats have names.")
    arbor("document", "add", str(tmp_path / "[draft] rules.md"))
    listed = arbor("document", "list").out
    assert ("[draft] rules.md" in listed, "[draft] Rules" in listed, "\\[" in listed) == (True, True, False)


@pytest.mark.parametrize(
    ("state", "fault"),
    [
        ({"indexing": "indexed", "passages": 3, "embedded": 2, "refused": 1}, ""),
        ({"indexing": "indexed", "passages": 3, "embedded": 2}, "found by words alone for long"),
        ({"indexing": "failed"}, "cannot be read"),
        ({"indexing": "pending"}, "not indexed for long"),
        ({"indexing": "pending", "retry_at": "2100-01-01T00:00Z"}, ""),
        ({"indexing": "indexing", "lease_until": "2100-01-01T00:00Z"}, ""),
        ({"indexing": "indexing", "lease_until": "2024-01-01T00:00Z"}, "not indexed for long"),
    ],
)
def test_doctor_names_documents_with_faults(tenant: Tenant, state: dict[str, Any], fault: str) -> None:
    with tenant_transaction(tenant.id):
        document = DocumentFactory.create(name="a.md")
        rows = Document.objects.filter(id=document.id)
        rows.update(updated_at="2024-01-01T00:00Z", **state)
    found = check_documents()
    if fault:
        assert (found.verdict, found.detail) == (CheckVerdict.WARN, f"{fault}: {tenant.slug}/a.md")
    else:
        assert found == ok("documents", "all documents are indexed")
    with tenant_transaction(tenant.id):
        rows.update(updated_at=Now(), retry_at=None, lease_until=None)
    assert check_documents().verdict is (
        CheckVerdict.WARN if state["indexing"] == "failed" else CheckVerdict.OK
    )


def test_an_agent_is_limited_to_categories(arbor: Arbor, vega: str) -> None:
    def limit(*options: str) -> object:
        return arbor("document", "limit", vega, *options, "--json").json["categories"]

    assert limit() is None
    assert limit("--category", "notes", "--category", "") == ["", "notes"]
    assert limit() == ["", "notes"]
    assert limit("--none") == []
    assert "finds no document" in arbor("document", "limit", vega).out
    assert limit("--all") is None
    assert arbor("document", "limit", vega, "--all", "--none").code == 2


def test_a_folder_is_synchronized(arbor: Arbor, one_tenant: str, folder: Path) -> None:
    first = arbor("document", "watch", str(folder), "--once", "--category", "wiki", "--json").json
    assert first["added"] == 10
    (folder / "note-0.md").unlink()
    (folder / "note-1.md").write_text("# Note 1\n\nAbout another topic.")
    second = arbor("document", "watch", str(folder), "--once", "--json").json
    assert (second["withdrawn"], second["changed"], second["added"]) == (1, 1, 0)
    assert listed_names(arbor, "--status", "withdrawn") == ["note-0.md"]
    (folder / "note-0.md").write_text("# Note 0\n\nIt is back.")
    (folder / "note-9.md").write_text("# Note 9\n\nIt is new.")
    arbor("document", "watch", str(folder), "--once", "--draft")
    assert listed_names(arbor, "--status", "draft") == ["note-9.md"]
    assert listed_names(arbor, "--status", "withdrawn") == ["note-0.md"]
    missing = arbor("document", "watch", str(folder / "nowhere"))
    assert (missing.code, "there is no folder" in missing.err) == (1, True)
    assert len(listed_names(arbor, "--status", "published")) == 9


def listed_names(arbor: Arbor, *options: str) -> list[str]:
    return [row["name"] for row in arbor("document", "list", *options, "--json").json["documents"]]


def test_a_persons_decision_outlasts_the_next_sync(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    watch = ("document", "watch", str(tmp_path), "--once", "--category", "wiki")
    for number in range(3):
        (tmp_path / f"note-{number}.md").write_text(f"About topic {number}.")
    arbor(*watch)
    arbor("document", "withdraw", "note-0.md")
    arbor("document", "file", "note-1.md", "secret")
    (tmp_path / "note-2.md").rename(tmp_path / "away")
    arbor(*watch)
    assert listed_names(arbor, "--status", "withdrawn", "--text", "note-2") == ["note-2.md"]
    # A file that comes back is published again, because no person withdrew its document.
    (tmp_path / "away").rename(tmp_path / "note-2.md")
    (tmp_path / "note-1.md").write_text("About another topic.")
    arbor(*watch)
    assert listed_names(arbor, "--status", "withdrawn") == ["note-0.md"]
    assert listed_names(arbor, "--category", "secret", "--status", "published") == ["note-1.md"]
    assert listed_names(arbor, "--category", "wiki", "--status", "published") == ["note-2.md"]


def test_a_file_that_comes_back_restores_the_status(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    watch = ("document", "watch", str(tmp_path), "--once", "--draft")
    for name in ("draft", "published", "withdrawn", "left"):
        (tmp_path / f"{name}.md").write_text(f"About {name}.")
    arbor(*watch)
    arbor("document", "publish", "published.md")
    arbor("document", "withdraw", "withdrawn.md")
    for name in ("draft", "published", "withdrawn"):
        (tmp_path / f"{name}.md").rename(tmp_path / f"{name}.away")
    arbor(*watch)
    assert set(listed_names(arbor, "--status", "withdrawn")) == {"draft.md", "published.md", "withdrawn.md"}
    for name in ("draft", "published", "withdrawn"):
        (tmp_path / f"{name}.away").rename(tmp_path / f"{name}.md")
    arbor(*watch)
    assert listed_names(arbor, "--status", "published") == ["published.md"]
    assert set(listed_names(arbor, "--status", "draft")) == {"draft.md", "left.md"}
    assert listed_names(arbor, "--status", "withdrawn") == ["withdrawn.md"]


def test_an_empty_folder_withdraws_only_when_allowed(arbor: Arbor, one_tenant: str, tmp_path: Path) -> None:
    watch = ("document", "watch", str(tmp_path), "--once")
    assert arbor(*watch).code == 0
    (tmp_path / "a.md").write_text("One.")
    arbor(*watch)
    (tmp_path / "a.md").unlink()
    refused = arbor(*watch)
    assert (refused.code, "1 document would be withdrawn" in refused.err) == (1, True)
    assert listed_names(arbor, "--status", "published") == ["a.md"]
    assert arbor(*watch, "--allow-empty").code == 0
    assert listed_names(arbor, "--status", "withdrawn") == ["a.md"]


def _options(tenant: Tenant, folder: Path) -> AddOptions:
    return AddOptions(tenant_id=tenant.id, actor=watching_actor(folder), publish=True)


def test_a_watched_folder_is_followed(tenant: Tenant, tmp_path: Path) -> None:
    stop = threading.Event()
    (tmp_path / "a.md").write_text("One.")
    (tmp_path / "b.md").write_text("It stays.")
    results = watch_folder(tmp_path, options=_options(tenant, tmp_path), stop=stop)
    assert [(found.name, found.change) for found in (next(results), next(results))] == [
        ("a.md", FileChange.ADDED),
        ("b.md", FileChange.ADDED),
    ]
    (tmp_path / "a.md").write_text("Two.")
    assert next(results).change is FileChange.CHANGED
    (tmp_path / "a.md").unlink()
    assert next(results).change is FileChange.WITHDRAWN
    (tmp_path / "b.md").unlink()
    with pytest.raises(Invalid, match="1 document would be withdrawn"):
        next(results)
    with tenant_transaction(tenant.id):
        assert dict(Document.objects.values_list("name", "status")) == {
            "a.md": "withdrawn",
            "b.md": "published",
        }


def test_changes_during_the_first_sync_are_found(tenant: Tenant, tmp_path: Path) -> None:
    stop = threading.Event()
    (tmp_path / "b.md").write_text("One.")
    results = watch_folder(tmp_path, options=_options(tenant, tmp_path), stop=stop)
    assert next(results).name == "b.md"
    # The synchronization has listed the folder, and has not ended.
    (tmp_path / "a.md").write_text("Two.")
    assert next(results).name == "a.md"
    stop.set()
    assert list(results) == []


def test_names_of_files_never_control_the_terminal(
    arbor: Arbor, one_tenant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    name = os.fsdecode(b"a\x1b[2J\xe9.md")
    (tmp_path / name).write_text("# A")
    refused = FileResult(name=name, change=FileChange.REFUSED, error="not UTF-8")
    monkeypatch.setattr(documents, "watch_folder", lambda *_, **__: [refused])
    for json_option in ((), ("--json",)):
        for once, code in (((), 0), (("--once", "--allow-empty"), 1)):
            ran = arbor("document", "watch", str(tmp_path), *once, *json_option)
            assert (ran.code, "refused" in ran.out, "\x1b" in ran.out) == (code, True, False), ran.err
