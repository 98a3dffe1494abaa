"""Manage documents, and watch folders."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import UUID

import click
from rich.console import Group, RenderableType
from rich.markup import escape

from apps.knowledge.models import Document, Passage
from apps.knowledge.services.categories import categories_of, describe_categories, set_categories
from apps.knowledge.services.documents import (
    delete_document,
    document_by_name,
    file_document,
    publish_document,
    reindex_document,
    withdraw_document,
)
from apps.knowledge.services.folders import (
    AddOptions,
    FileChange,
    FileResult,
    add_file,
    files_in,
    synchronize_folder,
    watch_folder,
    watching_actor,
)
from apps.knowledge.services.indexing import index_document
from apps.knowledge.services.reading import (
    DocumentFilter,
    count_by_indexing,
    count_categories,
    find_documents,
    passages_of,
    read_text,
    version_of,
    versions_of,
)
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.ids import read_id
from arbor.knowledge.values import DocumentStatus, IndexingStatus
from arbor.quotations import counted
from config.cli.kit.columns import (
    OutputColumn,
    columns_for,
    first_rows,
    listing,
    part_title,
    row_to_dict,
    table_of,
)
from config.cli.kit.declarations import ExitCode, Output
from config.cli.kit.output import console, format_relative_time, json_of, progress_bar, table
from config.cli.kit.printable import printable
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    in_agent_transaction,
    in_tenant_transaction,
    tenant_having,
    tenant_or_all,
)

#: The most seconds that `add` waits for documents that workers index, and the seconds between two queries.
_WAITS_S = 600.0
_POLL_S = 0.5
#: The most unreadable files that are shown.
_BROKEN_SHOWN = 50

DOCUMENT_COLUMNS = (
    OutputColumn("name", "name"),
    OutputColumn("tenant", "tenant", value=lambda document: document.tenant.slug),
    OutputColumn("title", "title", cell=lambda title: title[:60]),
    OutputColumn("category", "category"),
    OutputColumn("kind", "kind"),
    OutputColumn("status", "status"),
    OutputColumn("indexing", "indexing"),
    OutputColumn("passages", "passages"),
    OutputColumn("embedded"),
    OutputColumn("refused"),
    OutputColumn("version", "version"),
    OutputColumn("indexed_version"),
    OutputColumn("error", "error", cell=lambda error: error[:80]),
    OutputColumn("updated_at", value=lambda document: document.updated_at.isoformat()),
    OutputColumn(head="changed", value=lambda document: format_relative_time(document.updated_at)),
    OutputColumn("id"),
)
VERSION_COLUMNS = (
    OutputColumn("number", "version"),
    OutputColumn("size", "bytes", cell=lambda size: f"{size:,}"),
    OutputColumn("pages", "pages"),
    OutputColumn("digest", value=lambda version: bytes(version.digest).hex()),
    OutputColumn("created_by", "by"),
    OutputColumn("created_at", value=lambda version: version.created_at.isoformat()),
    OutputColumn(head="added", value=lambda version: format_relative_time(version.created_at)),
    OutputColumn(
        "indexed_at",
        "indexed",
        value=lambda version: version.indexed_at.isoformat() if version.indexed_at else None,
        cell=lambda moment: moment or "never",
    ),
    OutputColumn("error", "error", cell=lambda error: error[:80]),
)
PASSAGE_COLUMNS = (
    OutputColumn("position", "no."),
    OutputColumn("place", "place"),
    OutputColumn("tokens", "tokens"),
    OutputColumn("text", "text", cell=lambda text: " ".join(text.split())[:100]),
    OutputColumn("is_embedded"),
    OutputColumn("id"),
)


def add(
    paths: tuple[Path, ...], category: str | None, publish: bool, background: bool, tenant_slug: str | None
) -> Output:
    """Add files and index them."""
    tenant = choose_tenant(tenant_slug)
    files = files_in(paths)
    if not files:
        raise Invalid("there is no document below these folders: Markdown, text, HTML, DOCX or PDF files")
    options = AddOptions(
        tenant_id=tenant.id, actor=actor(), category=category, publish=publish, index=not background
    )
    results: list[FileResult] = []
    with progress_bar("documents", "files") as progress:
        for file in files:
            progress(len(results), len(files))
            results.append(add_file(file, options=options))
        progress(len(files), len(files))
    if not background:
        results = _wait_for_workers(tenant.id, results)
    return _results_output(results)


def _wait_for_workers(tenant_id: UUID, results: Sequence[FileResult]) -> list[FileResult]:
    """Wait until workers have indexed the documents that they claimed, and return the results of all files."""
    open_ids = {result.document_id for result in results if result.document_id and result.indexing is None}
    ends_at = time.monotonic() + _WAITS_S
    while open_ids and time.monotonic() < ends_at:
        with tenant_transaction(tenant_id):
            counts = count_by_indexing(open_ids)
        if not counts[IndexingStatus.PENDING] + counts[IndexingStatus.INDEXING]:
            break
        time.sleep(_POLL_S)
    with tenant_transaction(tenant_id):
        rows = {row.id: row for row in Document.objects.filter(id__in=open_ids)}
    return [
        _with_stored_state(result, rows[result.document_id]) if result.document_id in rows else result
        for result in results
    ]


def _with_stored_state(result: FileResult, document: Document) -> FileResult:
    return FileResult(
        name=result.name,
        change=result.change,
        document_id=document.id,
        indexing=IndexingStatus(document.indexing),
        passages=document.passages,
        error=document.error,
    )


def _results_output(results: Sequence[FileResult]) -> Output:
    changes = Counter(result.change.value for result in results)
    broken = [result for result in results if result.is_broken]
    value: dict[str, Any] = {change.value: changes[change.value] for change in FileChange}
    value |= {
        "passages": sum(result.passages for result in results),
        "broken": [{"name": result.name, "error": result.error} for result in broken],
        "documents": [
            {"id": result.document_id, "name": result.name, "indexing": result.indexing}
            for result in results
            if result.document_id
        ],
    }
    counts = ", ".join(f"{count:,} {change}" for change, count in changes.items())
    passages = counted(value["passages"], "passage")
    text: RenderableType = f"{counted(len(results), 'file')}: {counts}; {passages}."
    if broken:
        title = f"\n[yellow]{len(broken):,} of them cannot be read[/yellow]:"
        rows = ((result.name, result.error) for result in broken[:_BROKEN_SHOWN])
        text = Group(str(text), title, table(("file", "reason"), rows))
    return Output(value, text=text, code=ExitCode.FAILED if broken else ExitCode.DONE)


def watch(
    folder: Path,
    *,
    category: str | None,
    draft: bool,
    once: bool,
    allow_empty: bool,
    tenant_slug: str | None,
    as_json: bool,
) -> Output | None:
    """Watch a folder and print a line for each change; `once` synchronizes the folder once instead."""
    tenant = choose_tenant(tenant_slug)
    if not folder.is_dir():
        raise Invalid(f"there is no folder {folder}")
    options = AddOptions(
        tenant_id=tenant.id,
        actor=watching_actor(folder),
        category=category,
        publish=not draft,
        defer_to_people=True,
        allow_empty=allow_empty,
    )
    if once:
        return _results_output(list(synchronize_folder(folder, options=options)))
    if not as_json:
        console(err=True).print(f"Watching {escape(str(folder))}; Ctrl-C stops.")
    for result in watch_folder(folder, options=options, stop=threading.Event()):
        line = {"name": result.name, "change": result.change.value, "error": result.error}
        click.echo(
            json_of(line)
            if as_json
            else printable("  ".join(filter(None, (line["change"], line["name"], line["error"]))))
        )
    return None


def list_documents(
    status: str | None,
    indexing: str | None,
    category: str | None,
    text: str,
    limit: int,
    tenant_slug: str | None,
) -> Output:
    """List documents."""
    wanted = DocumentFilter(
        status=DocumentStatus(status) if status else None,
        indexing=IndexingStatus(indexing) if indexing else None,
        category=category,
        text=text,
    )
    with tenant_or_all(tenant_slug, reason="list of documents") as tenant:
        rows = find_documents(wanted).select_related("tenant").order_by("-updated_at", "-id")
        shown = list(rows[:limit])
    return listing(
        "documents",
        shown,
        columns_for(DOCUMENT_COLUMNS, one_tenant=tenant is not None),
        empty="No documents. [bold]arbor document add PATH --help[/bold]",
    )


def show(document: str, tenant_slug: str | None) -> Output:
    """Show a document with its versions."""
    with _open_document(document, tenant_slug) as found:
        versions, total = first_rows(versions_of(found.id))
        value = _as_dict(found) | {
            "versions": [row_to_dict(version, VERSION_COLUMNS) for version in versions],
            "versions_total": total,
        }
    state = f"{found.status}, {found.indexing}: {found.embedded:,} of {counted(found.passages, 'passage')} embedded"
    lines = [f"[bold]{escape(found.title)}[/bold] ({escape(found.name)}) is {state}."]
    if found.category:
        lines.append(f"Category: {escape(found.category)}")
    if found.error:
        lines.append(f"[yellow]{escape(found.error)}[/yellow]")
    return Output(value, text=Group(*lines, table_of(versions, VERSION_COLUMNS, title=part_title(total))))


def read(document: str, start: int, length: int, tenant_slug: str | None) -> Output:
    """Print a part of the text of a document."""
    with _open_document(document, tenant_slug) as found:
        part = read_text(document=found, start=start, length=length)
    value = {
        "id": found.id,
        "version": part.version,
        "start": part.start,
        "length": part.length,
        "text": part.text,
    }
    return Output(value, text=escape(part.text))


def list_passages(document: str, limit: int, tenant_slug: str | None) -> Output:
    """List the passages of a document."""
    with _open_document(document, tenant_slug) as found:
        passages: list[Passage] = list(passages_of(found.id)[:limit])
    empty = f"{escape(found.name)} has no passages: it is {found.indexing}."
    return listing("passages", passages, PASSAGE_COLUMNS, empty=empty, about={"document": found.name})


def download(document: str, file: Path, version: int | None, tenant_slug: str | None) -> Output:
    """Write the file of a version of a document."""
    with _open_document(document, tenant_slug) as found:
        chosen = version_of(found.id, version)
    try:
        file.write_bytes(bytes(chosen.content))
    except OSError as error:
        raise Invalid(f"{file} cannot be written: {error.strerror}") from error
    value = {"id": found.id, "version": chosen.number, "file": str(file), "bytes": chosen.size}
    return Output(value, text=f"{escape(str(file))} has version {chosen.number}, {chosen.size:,} bytes.")


def publish(document: str, tenant_slug: str | None) -> Output:
    """Publish a document."""
    return _change_document(publish_document, document, tenant_slug, "is published")


def withdraw(document: str, tenant_slug: str | None) -> Output:
    """Withdraw a document."""
    return _change_document(withdraw_document, document, tenant_slug, "is withdrawn")


def delete(document: str, tenant_slug: str | None) -> Output:
    """Delete a document."""
    return _change_document(delete_document, document, tenant_slug, "is deleted with its versions")


def file(document: str, category: str, tenant_slug: str | None) -> Output:
    """Move a document to another category."""
    result = f"is filed under {category}" if category.strip() else "has no category any more"
    return _change_document(file_document, document, tenant_slug, result, category=category)


def reindex(document: str, background: bool, tenant_slug: str | None) -> Output:
    """Index a document again."""
    if background:
        return _change_document(reindex_document, document, tenant_slug, "is indexed again by the workers")
    with _open_document(document, tenant_slug) as found:
        reindex_document(document_id=found.id, actor=actor())
    indexed = index_document(document_id=found.id, tenant_id=found.tenant_id)
    with tenant_transaction(found.tenant_id):
        found = Document.objects.select_related("tenant").get(id=found.id)
    failed = indexed is not None and indexed.status is IndexingStatus.FAILED
    text = f"[bold]{escape(found.name)}[/bold] is {found.indexing}, {counted(found.passages, 'passage')}"
    text += f": {escape(found.error)}." if found.error else "."
    return Output(_as_dict(found), text=text, code=ExitCode.FAILED if failed else ExitCode.DONE)


def _change_document(
    change: Callable[..., Document], document: str, tenant_slug: str | None, result: str, **named: Any
) -> Output:
    """Change a document by a service, and return the output, whose text says the result."""
    with _open_document(document, tenant_slug) as found:
        changed = change(document_id=found.id, actor=actor(), **named)
        value = _as_dict(changed)
    return Output(value, text=f"[bold]{escape(changed.name)}[/bold] {escape(result)}.")


@contextmanager
def _open_document(document: str, tenant_slug: str | None) -> Iterator[Document]:
    """Open a transaction of the tenant that has the document, and yield the document."""
    named = {"id": read_id(document)} if read_id(document) else {"name": document}
    tenant_id = tenant_having(
        lambda: Document.objects.filter(**named),
        what=f"a document {document!r}",
        slug=tenant_slug,
        hint="`arbor document list` shows them",
    )
    with tenant_transaction(tenant_id):
        yield document_by_name(document)


def _as_dict(document: Document) -> dict[str, Any]:
    return row_to_dict(document, DOCUMENT_COLUMNS)


@in_tenant_transaction
def list_categories(tenant: Tenant) -> Output:
    """List categories."""
    counts = count_categories()
    value = {"tenant": tenant.slug, "categories": [vars(count) for count in counts]}
    rows = ((count.category or "none", count.documents, count.published) for count in counts)
    text = table(("category", "documents", "published"), rows) if counts else "No documents."
    return Output(value, text=text)


@in_agent_transaction
def limit(agent: ChosenAgent, *, categories: tuple[str, ...], no_document: bool, everything: bool) -> Output:
    """Show or set the categories that an agent finds."""
    if bool(categories) + no_document + everything > 1:
        raise click.UsageError("choose categories, --none or --all")
    if categories or no_document:
        chosen = set_categories(agent_id=agent.id, categories=categories, actor=actor())
    elif everything:
        chosen = set_categories(agent_id=agent.id, categories=None, actor=actor())
    else:
        chosen = categories_of(agent.id)
    text = escape(f"{agent.name} finds {describe_categories(chosen)}.")
    return Output({"agent": agent.name, "categories": chosen}, text=text)
