"""`arbor document`."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from apps.knowledge.models import Document
from apps.knowledge.services.folders import AddOptions, FileChange, watch_folder, watching_actor
from apps.queues import captured
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from tests.integration.cli.conftest import Arbor
from tests.support.document_files import docx, pdf


@pytest.fixture(autouse=True)
def _captured(database: None) -> Iterator[None]:
    with captured():
        yield


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a document of each kind, three broken ones, and files that are no documents."""
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
    again = arbor("document", "add", str(folder))
    assert (again.code, "10 unchanged" in again.out, "broken.pdf" in again.out) == (1, True, True)


def test_a_document_is_shown_changed_and_deleted(arbor: Arbor, one_tenant: str, folder: Path) -> None:
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
    assert arbor("document", "read", "note-1.md", "--start", "8", "--length", "5").out.strip() == "About"
    assert "characters 0 to" in arbor("document", "passages", shown["id"], "-k", "5").out
    old = folder / "old.md"
    arbor("document", "download", "note-1.md", str(old), "--version", "1")
    assert "topic 1" in old.read_text()
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


def test_an_agent_is_limited(arbor: Arbor, vega: str) -> None:
    def limit(*options: str) -> object:
        return arbor("document", "limit", vega, *options, "--json").json["categories"]

    assert limit() is None
    assert limit("--category", "notes", "--category", "") == ["", "notes"]
    assert limit() == ["", "notes"]
    assert limit("--none") == []
    assert "finds no document" in arbor("document", "limit", vega).out
    assert limit("--all") is None
    assert arbor("document", "limit", vega, "--all", "--none").code == 2


def test_a_folder_is_taken_over(arbor: Arbor, one_tenant: str, folder: Path) -> None:
    first = arbor("document", "watch", str(folder), "--once", "--category", "wiki", "--json").json
    assert first["added"] == 10
    (folder / "note-0.md").unlink()
    (folder / "note-1.md").write_text("# Note 1\n\nAbout another topic.")
    second = arbor("document", "watch", str(folder), "--once", "--json").json
    assert (second["withdrawn"], second["changed"], second["added"]) == (1, 1, 0)
    listed = arbor("document", "list", "--status", "withdrawn", "--json").json["documents"]
    assert [document["name"] for document in listed] == ["note-0.md"]
    (folder / "note-0.md").write_text("# Note 0\n\nIt is back.")
    arbor("document", "watch", str(folder), "--once", "--draft")
    assert arbor("document", "watch", str(folder / "nowhere")).code == 1


def test_a_watched_folder_is_followed(tenant: Tenant, tmp_path: Path) -> None:
    options = AddOptions(tenant_id=tenant.id, actor=watching_actor(tmp_path), publish=True)
    stop = threading.Event()
    (tmp_path / "a.md").write_text("One.")
    results = watch_folder(tmp_path, options, stop=stop)
    assert next(results).change is FileChange.ADDED
    timer = threading.Timer(0.3, lambda: (tmp_path / "a.md").write_text("Two."))
    timer.start()
    assert next(results).change is FileChange.CHANGED
    (tmp_path / "a.md").unlink()
    assert next(results).change is FileChange.WITHDRAWN
    stop.set()
    assert list(results) == []
    with tenant_transaction(tenant.id):
        assert Document.objects.get().status == "withdrawn"
