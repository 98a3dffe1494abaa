"""Add files of a machine's folders as documents, and watch folders for changes."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from enum import StrEnum
from itertools import chain
from pathlib import Path
from uuid import UUID

from django.db.models import QuerySet
from watchfiles import Change, DefaultFilter, watch

from apps.knowledge.models import Document
from apps.knowledge.services.documents import NewDocument, add_document, check_size, withdraw_document
from apps.knowledge.services.indexing import index_document
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound
from arbor.knowledge.files import checked_name, has_known_ending
from arbor.knowledge.values import DocumentStatus, IndexingStatus
from arbor.quotations import counted

#: The length of `Document.created_by`.
_ACTOR_LENGTH = 200
#: Milliseconds in which the changes of a folder are gathered into one batch.
_BATCH_MS = 800
#: Milliseconds without a change after which the batch is empty.
_QUIET_MS = 500


class FileChange(StrEnum):
    """The effect on a document when its file is added or is gone."""

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
    #: None: existing documents keep their category, and new ones have none.
    category: str | None = None
    publish: bool = False
    #: Index each document in this process at once; the workers, who are asked to index it in any case, may be faster.
    index: bool = True
    #: Leave category and status of existing documents as people chose them.
    defer_to_people: bool = False
    #: Withdraw all documents of a folder that has no file left, instead of raising an error.
    allow_empty: bool = False


@dataclass(frozen=True, kw_only=True)
class FileResult:
    """The result for one file that was added or is gone."""

    name: str
    change: FileChange
    document_id: UUID | None = None
    #: None: the workers will index the document, or one of them does; or the file was refused or is gone.
    indexing: IndexingStatus | None = None
    passages: int = 0
    #: Why the file was refused or could not be indexed; empty for no error.
    error: str = ""

    @property
    def is_broken(self) -> bool:
        """Return whether the file was refused, or its document could not be indexed."""
        return self.change is FileChange.REFUSED or self.indexing is IndexingStatus.FAILED


def files_in(paths: Iterable[Path]) -> list[FolderFile]:
    """Return the files at the paths, and those below paths that are folders, in order; a file below a folder is named by its path within it.

    Below folders, hidden files, unknown endings and links that lead out of the folder are left out. Of files with the same name only
    the first is returned. Raises Invalid for a path that does not exist.
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
    """Return the file at a path below a folder; None if it cannot be a document."""
    relative = path.relative_to(folder)
    if not has_known_ending(path.name) or any(part.startswith(".") for part in relative.parts):
        return None
    if not path.is_file() or not path.resolve().is_relative_to(folder.resolve()):
        return None
    return FolderFile(name=relative.as_posix(), path=path)


def add_file(file: FolderFile, *, options: AddOptions) -> FileResult:
    """Add a file as a document, and index it if `options.index` is set. A refused file is a result, not an error."""
    try:
        check_size(file.path.stat().st_size)
        content = file.path.read_bytes()
        with tenant_transaction(options.tenant_id):
            new = NewDocument(
                name=file.name,
                content=content,
                category=options.category,
                publish=options.publish,
                defer_to_people=options.defer_to_people,
            )
            added = add_document(new=new, actor=options.actor)
    except (Invalid, OSError) as error:
        # A file's name may have bytes that are no text, which cannot be printed.
        name = file.name.encode(errors="replace").decode()
        return FileResult(name=name, change=FileChange.REFUSED, error=str(error))
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
    return replace(result, indexing=indexed.status, passages=indexed.passages, error=indexed.error)


def watching_actor(folder: Path) -> str:
    """Return the actor that adds a watched folder's documents, by which a later run finds them."""
    text = f"watch:{folder.resolve()}"
    return text if len(text) <= _ACTOR_LENGTH else f"watch:…{text[-(_ACTOR_LENGTH - 7) :]}"


def synchronize_folder(folder: Path, *, options: AddOptions) -> Iterator[FileResult]:
    """Add new and changed files below a folder, and withdraw the documents whose files are gone.

    `options.actor` is the `watching_actor` of the folder. Raises Invalid if all documents of the folder would be withdrawn, unless
    `options.allow_empty` is set.
    """
    present = set()
    for file in _below(folder):
        present.add(_stored_name(file.name))
        result = add_file(file, options=options)
        if result.change is not FileChange.UNCHANGED or result.is_broken:
            yield result
    with tenant_transaction(options.tenant_id):
        gone = [name for name in _known(options).values_list("name", flat=True) if name not in present]
    if gone:
        _require_files(folder, options)
    for name in gone:
        yield from _withdraw(name, options)


def _known(options: AddOptions) -> QuerySet[Document]:
    """Return the documents of the watched folder that are not withdrawn."""
    return Document.objects.filter(created_by=options.actor).exclude(status=DocumentStatus.WITHDRAWN)


def _require_files(folder: Path, options: AddOptions) -> None:
    """Raise Invalid if a folder with documents is gone or empty: its disk may not be mounted."""
    if options.allow_empty or any(_file_at(folder, path) for path in folder.rglob("*")):
        return
    with tenant_transaction(options.tenant_id):
        documents = _known(options).count()
    if documents:
        fault = "has no file of a document" if folder.is_dir() else "is gone"
        raise Invalid(
            f"the folder {folder} {fault}, so {counted(documents, 'document')} would be withdrawn: mount its disk, or allow this by"
            " --allow-empty"
        )


def _stored_name(name: str) -> str:
    """Return the name under which a file is stored; a name that `add_file` refuses stays as it is."""
    try:
        return checked_name(name)
    except Invalid:
        return name


def watch_folder(folder: Path, *, options: AddOptions, stop: threading.Event) -> Iterator[FileResult]:
    """Add the files that change below a folder until `stop` is set, after a `synchronize_folder`, whose errors it raises too."""
    base = folder.resolve()
    batches = watch(
        base,
        watch_filter=DefaultFilter(),
        debounce=_BATCH_MS,
        rust_timeout=_QUIET_MS,
        stop_event=stop,
        yield_on_timeout=True,
    )
    # Reading the first batch, which is often empty, begins the watching: later batches have the changes during the synchronization.
    first = next(batches, set())
    yield from synchronize_folder(folder, options=options)
    for changes in chain([first], batches):
        if any(change is Change.deleted for change, _ in changes):
            _require_files(base, options)
        for _change, text in sorted(changes):
            yield from _follow(base, Path(text), options)


def _follow(base: Path, path: Path, options: AddOptions) -> Iterator[FileResult]:
    file = _file_at(base, path)
    if file is not None:
        result = add_file(file, options=options)
        if result.change is not FileChange.UNCHANGED:
            yield result
    elif path.is_dir():
        # A folder that was moved here has files that no change names.
        for moved in _below(path):
            yield from _follow(base, moved.path, options)
    elif not path.exists():
        yield from _withdraw(path.relative_to(base).as_posix(), options)


def _withdraw(name: str, options: AddOptions) -> Iterator[FileResult]:
    """Withdraw the document of a file that is gone, or all documents of a folder that is gone."""
    name = _stored_name(name)
    with tenant_transaction(options.tenant_id):
        known = _known(options)
        gone = list(known.filter(name=name)) or list(known.filter(name__startswith=f"{name}/"))
    for document in gone:
        # One transaction for each document, because two locked in different orders could deadlock. A person may delete one meanwhile.
        with suppress(NotFound), tenant_transaction(options.tenant_id):
            withdraw_document(document_id=document.id, actor=options.actor)
        yield FileResult(name=document.name, change=FileChange.WITHDRAWN, document_id=document.id)
