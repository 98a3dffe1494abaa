"""View of the editor of templates: check a text line by line, preview its system prompt, save it."""

from __future__ import annotations

from dataclasses import replace

from django.contrib import messages
from django.db import transaction
from django.http import HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_http_methods

from apps.agents.services.templates import add_template, update_template
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.pages.template_editor import (
    TemplateEditorPage,
    check_text,
    open_editor,
    own_template_exists,
    template_names,
)
from apps.console.views import console_page, posted_text, refuse
from apps.tenants.scope import APP
from arbor.errors import AlreadyExists, Invalid, NotFound


@require_http_methods(["GET", "HEAD", "POST"])
def edit_template(request: HttpRequest) -> HttpResponse:
    """Show the editor; check the posted text, and save it where that was asked and it has no fault."""
    require_member(request, to="see its templates")
    if request.method != "POST":
        return _page(request, open_editor(request.GET.get("name", "")))
    if not has_right(request, Right.OPERATE):
        return refuse(request, attempted="change a template")
    text = posted_text(request)
    name = request.POST.get("name", "")
    page = check_text(text, name=name)
    if page.spec is not None and request.POST.get("act") == "save":
        saved = _save(request, text, page.spec.name, name)
        if saved is not None:
            return saved
    return _page(request, replace(page, templates=template_names()))


def _save(request: HttpRequest, text: str, new_name: str, name: str) -> HttpResponse | None:
    """Add or replace the template, and redirect to its editor; None, with a message, where that is refused."""
    replaces = bool(name) and new_name.casefold() == name.casefold() and own_template_exists(name)
    try:
        with transaction.atomic(using=APP):
            store = update_template if replaces else add_template
            template = store(text=text, actor=actor_of(request))
    except (Invalid, AlreadyExists, NotFound) as refusal:
        messages.error(request, f"Nothing was saved: {refusal}.")
        return None
    messages.success(
        request, f"Saved template {template.name} {template.version}. Its agents stay as they are."
    )
    return HttpResponseRedirect(f"{reverse('admin:template-edit')}?name={template.name}")


def _page(request: HttpRequest, page: TemplateEditorPage) -> HttpResponse:
    return console_page(
        request,
        "console/template_editor.html",
        title=f"Template {page.name}" if page.name else "New template",
        page=page,
        may_operate=has_right(request, Right.OPERATE),
    )
