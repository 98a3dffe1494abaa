"""Pages and forms of documents: added, published, filed, withdrawn, indexed again and deleted."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any
from uuid import UUID

from django import forms
from django.core.files.uploadedfile import UploadedFile
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.utils.http import content_disposition_header
from django.views.decorators.http import require_GET, require_POST
from unfold.widgets import UnfoldAdminTextInputWidget, UnfoldBooleanSwitchWidget

from apps.console.access import actor_of, require_member
from apps.console.row_acts import RowAct, apply_act
from apps.knowledge.models import Document, DocumentVersion, Passage
from apps.knowledge.services.documents import (
    NewDocument,
    add_document,
    check_size,
    delete_document,
    file_document,
    publish_document,
    reindex_document,
    withdraw_document,
)
from apps.knowledge.services.reading import count_categories, passages_of, version_of, versions_of
from apps.tenants.scope import APP
from arbor.errors import Invalid
from arbor.knowledge.files import ENDINGS
from arbor.knowledge.values import CATEGORY_LENGTH, DocumentStatus, IndexingStatus

#: Passages and versions that the page of a document shows.
PASSAGES_SHOWN = 50
_VERSIONS_SHOWN = 20


@dataclass(frozen=True, kw_only=True)
class DocumentPage:
    """A document with its versions, and the first of its passages."""

    document: Document
    versions: list[DocumentVersion]
    passages: list[Passage]
    more_passages: int
    categories: list[str]
    is_published: bool
    #: The number of passages that do not wait for a vector, and their share in percent.
    settled: int
    percent: int


class _SeveralFiles(forms.ClearableFileInput):
    allow_multiple_selected = True


class FilesField(forms.FileField):
    """One or more files of documents, each within the limit of size."""

    widget = _SeveralFiles

    def clean(self, data: Any, initial: Any = None) -> list[UploadedFile[Any]]:
        """Return the files. Raises ValidationError."""
        files = data if isinstance(data, list | tuple) else [data]
        cleaned = [super(FilesField, self).clean(file, initial) for file in files]
        try:
            for file in cleaned:
                check_size(file.size)
        except Invalid as error:
            raise forms.ValidationError(f"{error}.") from error
        return cleaned


class NewDocumentsForm(forms.Form):
    """The form of new documents."""

    chosen = FilesField(
        label="Files",
        widget=_SeveralFiles(
            attrs={"accept": ",".join(sorted(ENDINGS)), "multiple": True, "class": "ar-input"}
        ),
        help_text="Markdown, text, HTML, Word (DOCX) or PDF. A file of a known name becomes that document's next version.",
    )
    category = forms.CharField(
        required=False,
        max_length=CATEGORY_LENGTH,
        widget=UnfoldAdminTextInputWidget(attrs={"list": "categories", "autocomplete": "off"}),
        help_text="Such as policies; agents can be limited to categories. Empty: as it is, or none.",
    )
    publish = forms.BooleanField(
        required=False,
        widget=UnfoldBooleanSwitchWidget(),
        help_text="Publish them at once, so that agents find them. Otherwise new documents are drafts.",
    )

    def add(self, *, actor: str) -> list[Document]:
        """Add the files, each in a transaction of its own; refused files are among the form's errors."""
        added = []
        for file in self.cleaned_data["chosen"]:
            new = NewDocument(
                name=str(file.name),
                content=file.read(),
                category=self.cleaned_data["category"] or None,
                publish=self.cleaned_data["publish"],
            )
            try:
                with transaction.atomic(using=APP):
                    added.append(add_document(new=new, actor=actor).document)
            except Invalid as refusal:
                self.add_error(None, f"{file.name}: {refusal}.")
        return added


def known_categories() -> list[str]:
    """Return the categories of the tenant's documents, to choose from."""
    return [count.category for count in count_categories() if count.category]


def read_document(document: Document) -> DocumentPage:
    """Return the page of a document. Three queries."""
    passages = list(passages_of(document.id)[: PASSAGES_SHOWN + 1])
    whole = document.passages or len(passages)
    settled = document.embedded + document.refused
    return DocumentPage(
        document=document,
        versions=list(versions_of(document.id)[:_VERSIONS_SHOWN]),
        passages=passages[:PASSAGES_SHOWN],
        more_passages=max(0, whole - PASSAGES_SHOWN) if len(passages) > PASSAGES_SHOWN else 0,
        categories=known_categories(),
        is_published=document.status == DocumentStatus.PUBLISHED,
        settled=settled,
        percent=round(100 * settled / document.passages) if document.passages else 0,
    )


def is_under_way(document: Document) -> bool:
    """Return whether a document waits for a worker, or has one."""
    return document.indexing in {IndexingStatus.PENDING, IndexingStatus.INDEXING}


def added_as_json(documents: list[Document], form: NewDocumentsForm) -> dict[str, Any]:
    """Return the result of the form for the script that sends files one by one."""
    errors = [str(error) for field_errors in form.errors.values() for error in field_errors]
    return {
        "documents": [
            {"name": document.name, "url": reverse("admin:knowledge_document_change", args=[document.id])}
            for document in documents
        ],
        "errors": errors,
    }


def _publish(request: HttpRequest, document_id: UUID) -> str:
    return f"{publish_document(document_id=document_id, actor=actor_of(request)).title} is published."


def _withdraw(request: HttpRequest, document_id: UUID) -> str:
    return f"{withdraw_document(document_id=document_id, actor=actor_of(request)).title} is withdrawn."


def _reindex(request: HttpRequest, document_id: UUID) -> str:
    return (
        f"{reindex_document(document_id=document_id, actor=actor_of(request)).title} is indexed again soon."
    )


def _file(request: HttpRequest, document_id: UUID) -> str:
    category = request.POST.get("category", "")
    document = file_document(document_id=document_id, category=category, actor=actor_of(request))
    return f"{document.title} is filed under {document.category or 'no category'}."


def _delete(request: HttpRequest, document_id: UUID) -> str:
    return f"{delete_document(document_id=document_id, actor=actor_of(request)).title} is deleted."


DOCUMENT_ACTS: Mapping[str, RowAct] = MappingProxyType(
    {"publish": _publish, "withdraw": _withdraw, "reindex": _reindex, "file": _file, "delete": _delete}
)


@require_POST
def act_on_document(request: HttpRequest, document_id: UUID) -> HttpResponse:
    """Apply the posted act to a document, and redirect to its page or, once it is deleted, to the list."""
    refusal = apply_act(request, DOCUMENT_ACTS, document_id, "document")
    if refusal is not None:
        return refusal
    if request.POST.get("act") == "delete":
        return HttpResponseRedirect(reverse("admin:knowledge_document_changelist"))
    return HttpResponseRedirect(reverse("admin:knowledge_document_change", args=[document_id]))


@require_GET
def download_document(request: HttpRequest, document_id: UUID, number: int) -> HttpResponse:
    """Send the file of a version as a download, because a browser must not render an uploaded file as a page of the console."""
    require_member(request, to="read its documents")
    version = version_of(document_id, number)
    name = version.document.name.rpartition("/")[2]
    response = HttpResponse(bytes(version.content), content_type="application/octet-stream")
    response.headers["Content-Disposition"] = (
        content_disposition_header(as_attachment=True, filename=name) or "attachment"
    )
    response.headers["X-Content-Type-Options"] = "nosniff"
    return response
