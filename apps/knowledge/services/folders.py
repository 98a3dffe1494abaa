"""Add files of a machine's folders as documents, and follow a folder's changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from uuid import UUID

from watchfiles import DefaultFilter, watch

from apps.knowledge.models import Document
from apps.knowledge.services.documents import NewDocument, add_document, check_size, withdraw_document
from apps.knowledge.services.indexing import index_document
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid
from arbor.knowledge.files import checked_name, has_known_ending
from arbor.knowledge.values import DocumentStatus, IndexingStatus

#: The length of `Document.created_by`.
_ACTOR_LENGTH = 200
#: Milliseconds within which changes of a folder are taken together.
_GATHERED_MS = 800


class FileChange(StrEnum):
    """The effect of adding a file, or of its removal, on its document."""

    #: A new document.
    ADDED = "added"
    #: A new version of a document.
    CHANGED = "changed"
    #: The document has this file already.
    UNCHANGED = "unchanged"
    #: The file is gone, and its document withdrawn.
    WITHDRAWN = "withdrawn"
    #: The file cannot be a document, or cannot be read.
    REFUSED = "refused"


@dataclass(frozen=True, kw_only=True)
class FolderFile:
    """A file and its name as a document."""

    name: str
    path: Path


@dataclass(frozen=True, kw_only=True)
class AddOptions:
    """The tenant and the options with which files are added as documents."""

    tenant_id: UUID
    actor: str
    #: None: as the documents have it.
    category: str | None = None
    publish: bool = False
    #: Index each document in this process too, instead of leaving it to the workers.
    index: bool = True


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """The result of adding a file, or of its removal."""

    name: str
    change: FileChange
    document_id: UUID | None = None
    #: None: it was left to the workers, or another worker has it.
    indexing: IndexingStatus | None = None
    passages: int = 0
    #: Why it was refused or could not be indexed; empty for no error.
    error: str = ""

    @property
    def is_broken(self) -> bool:
        """Return whether the file was refused, or its document could not be indexed."""
        return self.change is FileChange.REFUSED or self.indexing is IndexingStatus.FAILED


def files_in(paths: Iterable[Path]) -> list[FolderFile]:
    """Return the files at the paths and below those that are folders, in order; below a folder, a name is the path within it.

    Below folders, hidden files, unknown endings and links that lead out of the folder are left out. Of files with the same name the
    first counts. Raises Invalid for a path that does not exist.
    """
    found: dict[str, FolderFile] = {}
    for path in paths:
        if not path.exists():
            raise Invalid(f"there is no file or folder {path}")
        for file in _below(path) if path.is_dir() else [FolderFile(name=path.name, path=path)]:
            found.setdefault(file.name, file)
    return list(found.values())


def _below(folder: Path) -> Iterator[FolderFile]:
    for path in sorted(folder.rglob("*")):
        if file := _file_at(folder, path):
            yield file


def _file_at(folder: Path, path: Path) -> FolderFile | None:
    """Return the file at a path below a folder; None if it is no document."""
    relative = path.relative_to(folder)
    if not has_known_ending(path.name) or any(part.startswith(".") for part in relative.parts):
        return None
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        return None
    return FolderFile(name=relative.as_posix(), path=path)


def add_file(file: FolderFile, options: AddOptions) -> FileResult:
    """Add a file as a document, and index it if the options ask for it. A refused file is a result, not an error."""
    try:
        check_size(file.path.stat().st_size)
        content = file.path.read_bytes()
        with tenant_transaction(options.tenant_id):
            new = NewDocument(
                name=file.name, content=content, category=options.category, publish=options.publish
            )
            added = add_document(new=new, actor=options.actor)
    except (Invalid, OSError) as error:
        return FileResult(name=file.name, change=FileChange.REFUSED, error=str(error))
    change = (
        FileChange.ADDED if added.is_new else FileChange.CHANGED if added.is_changed else FileChange.UNCHANGED
    )
    document = added.document
    result = FileResult(
        name=file.name,
        change=change,
        document_id=document.id,
        indexing=IndexingStatus(document.indexing) if change is FileChange.UNCHANGED else None,
        passages=document.passages,
        error=document.error,
    )
    if change is FileChange.UNCHANGED or not options.index:
        return result
    indexed = index_document(document_id=document.id, tenant_id=options.tenant_id)
    if indexed is None:
        return result
    return FileResult(
        name=file.name,
        change=change,
        document_id=document.id,
        indexing=indexed.status,
        passages=indexed.passages,
        error=indexed.error,
    )


def watching_actor(folder: Path) -> str:
    """Return the actor that a watched folder's documents are recorded with, so that a later run finds them."""
    text = f"watch:{folder.resolve()}"
    return text if len(text) <= _ACTOR_LENGTH else f"watch:…{text[-(_ACTOR_LENGTH - 7) :]}"


def synchronize_folder(folder: Path, options: AddOptions) -> Iterator[FileResult]:
    """Add new and changed files below a folder, and withdraw the documents whose files are gone.

    `options.actor` is the `watching_actor` of the folder.
    """
    present = set()
    for file in _below(folder):
        present.add(_stored_name(file.name))
        result = add_file(file, options)
        if result.change is not FileChange.UNCHANGED or result.is_broken:
            yield result
    with tenant_transaction(options.tenant_id):
        known = Document.objects.filter(created_by=options.actor).exclude(status=DocumentStatus.WITHDRAWN)
        gone = [name for name in known.values_list("name", flat=True) if name not in present]
    for name in gone:
        yield from _withdraw(name, options)


def _stored_name(name: str) -> str:
    """Return the name as documents have it; one that `add_file` refuses stays as it is."""
    try:
        return checked_name(name)
    except Invalid:
        return name


def watch_folder(folder: Path, options: AddOptions, *, stop: threading.Event) -> Iterator[FileResult]:
    """Follow the changes below a folder until `stop` is set, beginning with what changed before."""
    yield from synchronize_folder(folder, options)
    base = folder.resolve()
    for changes in watch(
        base, watch_filter=DefaultFilter(), debounce=_GATHERED_MS, stop_event=stop, yield_on_timeout=False
    ):
        for _, text in sorted(changes):
            yield from _follow(base, Path(text), options)


def _follow(base: Path, path: Path, options: AddOptions) -> Iterator[FileResult]:
    file = _file_at(base, path)
    if file is not None:
        result = add_file(file, options)
        if result.change is not FileChange.UNCHANGED:
            yield result
    elif path.is_dir():
        # A folder that was moved here has files that no change names.
        for moved in _below(path):
            yield from _follow(base, moved.path, options)
    elif not path.exists():
        yield from _withdraw(path.relative_to(base).as_posix(), options)


def _withdraw(name: str, options: AddOptions) -> Iterator[FileResult]:
    """Withdraw the document of a file that is gone, or the documents of a folder that is."""
    with tenant_transaction(options.tenant_id):
        known = Document.objects.filter(created_by=options.actor).exclude(status=DocumentStatus.WITHDRAWN)
        name = _stored_name(name)
        gone = list(known.filter(name=name)) or list(known.filter(name__startswith=f"{name}/"))
        for document in gone:
            withdraw_document(document_id=document.id, actor=options.actor)
    for document in gone:
        yield FileResult(name=document.name, change=FileChange.WITHDRAWN, document_id=document.id)
