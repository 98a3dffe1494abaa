"""The forms of saved seeds: save, fork, upload, restore, import, merge, compare, download and delete."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from types import MappingProxyType
from typing import BinaryIO, cast
from uuid import UUID

from django.contrib import messages
from django.http import FileResponse, HttpRequest, HttpResponse, HttpResponseRedirect
from django.urls import reverse
from django.views.decorators.http import require_POST, require_safe

from apps.console import cells
from apps.console.access import Right, actor_of, has_right, require_member
from apps.console.forms import chosen_agent
from apps.console.views import console_page, refuse
from apps.fleet.seeds.files import VerifiedSeed, compare_seeds
from apps.fleet.seeds.importing import ImportOptions, fork_agent, import_seed
from apps.fleet.seeds.merging import MergeOptions, MergeReport, merge_seed
from apps.fleet.seeds.restoring import RestoreOptions, SeedReport, restore_seed
from apps.fleet.seeds.saving import (
    delete_saved_seed,
    download_saved_seed,
    save_seed,
    save_upload,
    verified_saved_seed,
)
from apps.fleet.seeds.sections import SeedGroup
from apps.tenants.scope import tenant_transaction
from apps.tenants.services import Access
from arbor.errors import AlreadyExists, IdentityRefused, Invalid, NotFound
from arbor.ids import read_id
from arbor.quotations import counted
from arbor.seeds.diff import SectionDifference
from arbor.seeds.merging import MergeConflict
from arbor.seeds.saving import SeedReason

#: Conflicts of a merge that are shown.
_CONFLICTS_SHOWN = 50
_REFUSALS = (Invalid, AlreadyExists, NotFound, IdentityRefused)


@dataclass(frozen=True, kw_only=True)
class SeedAnswer:
    """The result of an act: a text, with the address to redirect to or the details of a report."""

    text: str
    address: str = ""
    sections: tuple[SectionDifference, ...] = ()
    conflicts: tuple[MergeConflict, ...] = ()


@dataclass(frozen=True, kw_only=True)
class _SeedAct[Subject]:
    """An act of a form, its description in the audit log where it is refused, and the right that it needs."""

    run: Callable[[HttpRequest, Access, Subject], SeedAnswer]
    attempted: str
    right: Right = Right.OWN


@require_safe
def download_seed(request: HttpRequest, seed_id: UUID) -> HttpResponse | FileResponse:
    """Answer with the file of a saved seed."""
    if not has_right(request, Right.OWN):
        return refuse(request, attempted=f"download the seed {seed_id}", right=Right.OWN)
    file = download_saved_seed(seed_id=seed_id, actor=actor_of(request))
    return FileResponse(file, as_attachment=True, filename=f"{seed_id}.seed")


@require_POST
def make_seed(request: HttpRequest) -> HttpResponse:
    """Save a seed of an agent, fork an agent, or save an uploaded seed."""
    back = reverse("admin:fleet_savedseed_add")
    return _answer(request, _CREATING_ACTS, None, back=back)


@require_POST
def act_on_seed(request: HttpRequest, seed_id: UUID) -> HttpResponse:
    """Apply the posted act to a saved seed.

    The middleware opens no transaction for this view and `make_seed`: a seed is verified outside of a transaction.
    """
    return _answer(request, _ACTS, seed_id, back=cells.page_of("fleet_savedseed", seed_id))


def _answer[Subject](
    request: HttpRequest, acts: Mapping[str, _SeedAct[Subject]], subject: Subject, *, back: str
) -> HttpResponse:
    access = require_member(request, to="use the seeds of its agents")
    verb = request.POST.get("act", "")
    if (act := acts.get(verb)) is None:
        raise NotFound(f"the act must be one of {', '.join(acts)}, got {verb!r}")
    if not has_right(request, act.right):
        with tenant_transaction(access.tenant_id):
            return refuse(request, attempted=act.attempted, right=act.right)
    try:
        answer = act.run(request, access, subject)
    except _REFUSALS as refusal:
        messages.error(request, f"Nothing was done: {refusal}.")
        return HttpResponseRedirect(back)
    if answer.address:
        messages.success(request, answer.text)
        return HttpResponseRedirect(answer.address)
    with tenant_transaction(access.tenant_id):
        page = console_page(request, "console/seed_report.html", title="Seeds", answer=answer, back=back)
        # The navigation reads rows of the tenant, whose transaction ends here.
        return cast("HttpResponse", page.render())  # type: ignore[attr-defined]


# --- Acts that save a seed or fork an agent --------------------------------------------------------------


def _save(request: HttpRequest, access: Access, _: None) -> SeedAnswer:
    agent_id = _posted_agent(request, access)
    with tenant_transaction(access.tenant_id):
        saved = save_seed(agent_id=agent_id, reason=SeedReason.REQUESTED, actor=actor_of(request))
    return SeedAnswer(
        text=f"A seed of {saved.name} is saved.", address=cells.page_of("fleet_savedseed", saved.id)
    )


def _fork(request: HttpRequest, access: Access, _: None) -> SeedAnswer:
    report = fork_agent(
        tenant_id=access.tenant_id,
        agent_id=_posted_agent(request, access),
        name=request.POST.get("name", ""),
        actor=actor_of(request),
    )
    return _created(report)


def _upload(request: HttpRequest, access: Access, _: None) -> SeedAnswer:
    file = request.FILES.get("file")
    if file is None:
        raise Invalid("choose the file of a seed")
    saved = save_upload(
        tenant_id=access.tenant_id, source=cast("BinaryIO", file.file), actor=actor_of(request)
    )
    return SeedAnswer(
        text=f"The seed of {saved.name} is verified and saved.",
        address=cells.page_of("fleet_savedseed", saved.id),
    )


# --- Acts on a saved seed --------------------------------------------------------------------------------


def _restore(request: HttpRequest, access: Access, seed_id: UUID) -> SeedAnswer:
    parts = {SeedGroup(part) for part in request.POST.getlist("part") if part in set(SeedGroup)}
    if not parts:
        raise Invalid("choose at least one part of the agent")
    with _opened(request, access, seed_id) as seed:
        report = restore_seed(
            tenant_id=access.tenant_id,
            agent_id=seed.manifest.header.agent_id,
            seed=seed,
            options=RestoreOptions(skip=frozenset(SeedGroup) - parts, dry_run=_is_dry_run(request)),
            actor=actor_of(request),
        )
    if report.dry_run:
        return SeedAnswer(text=f"{report.name} would be restored: {_rows_of(report)}")
    return SeedAnswer(
        text=f"{report.name} is restored: {_rows_of(report)} A seed of the state before is saved.",
        address=cells.page_of("agents_agent", report.agent_id),
    )


def _import(request: HttpRequest, access: Access, seed_id: UUID) -> SeedAnswer:
    with _opened(request, access, seed_id) as seed:
        report = import_seed(
            tenant_id=access.tenant_id,
            seed=seed,
            options=ImportOptions(
                name=request.POST.get("name", ""),
                trust_foreign=_trusts(request),
                dry_run=_is_dry_run(request),
            ),
            actor=actor_of(request),
        )
    return _created(report)


def _merge(request: HttpRequest, access: Access, seed_id: UUID) -> SeedAnswer:
    with _opened(request, access, seed_id) as seed:
        report = merge_seed(
            tenant_id=access.tenant_id,
            agent_id=_posted_agent(request, access),
            seed=seed,
            options=MergeOptions(trust_foreign=_trusts(request), dry_run=_is_dry_run(request)),
            actor=actor_of(request),
        )
    return SeedAnswer(text=_merged(report), conflicts=report.conflicts[:_CONFLICTS_SHOWN])


def _compare(request: HttpRequest, access: Access, seed_id: UUID) -> SeedAnswer:
    other_id = read_id(request.POST.get("other", ""))
    if other_id is None:
        raise Invalid("choose the seed to compare with")
    with _opened(request, access, other_id) as first, _opened(request, access, seed_id) as second:
        sections = compare_seeds(first, second)
        earlier, later = (seed.manifest.header.captured_at for seed in (first, second))
    changed = tuple(section for section in sections if section.added or section.removed or section.changed)
    between = f"from the capture of {earlier:%Y-%m-%d %H:%M} UTC to that of {later:%Y-%m-%d %H:%M} UTC"
    text = f"Differences {between}." if changed else f"Nothing differs {between}."
    return SeedAnswer(text=text, sections=changed)


def _delete(request: HttpRequest, access: Access, seed_id: UUID) -> SeedAnswer:
    with tenant_transaction(access.tenant_id):
        deleted = delete_saved_seed(seed_id=seed_id, actor=actor_of(request))
    return SeedAnswer(
        text=f"The seed of {deleted.name} is deleted.", address=reverse("admin:fleet_savedseed_changelist")
    )


_CREATING_ACTS: Mapping[str, _SeedAct[None]] = MappingProxyType(
    {
        "save": _SeedAct(run=_save, attempted="save a seed", right=Right.OPERATE),
        "fork": _SeedAct(run=_fork, attempted="fork an agent"),
        "upload": _SeedAct(run=_upload, attempted="upload a seed"),
    }
)
_ACTS: Mapping[str, _SeedAct[UUID]] = MappingProxyType(
    {
        "restore": _SeedAct(run=_restore, attempted="restore a seed"),
        "import": _SeedAct(run=_import, attempted="import a seed"),
        "merge": _SeedAct(run=_merge, attempted="merge a seed"),
        "compare": _SeedAct(run=_compare, attempted="compare seeds"),
        "delete": _SeedAct(run=_delete, attempted="delete a seed"),
    }
)


def _opened(request: HttpRequest, access: Access, seed_id: UUID) -> AbstractContextManager[VerifiedSeed]:
    return verified_saved_seed(tenant_id=access.tenant_id, seed_id=seed_id, actor=actor_of(request))


def _posted_agent(request: HttpRequest, access: Access) -> UUID:
    with tenant_transaction(access.tenant_id):
        agent = chosen_agent(request.POST)
    if agent is None:
        raise Invalid("there is no such agent; write its name or id")
    return agent.id


def _is_dry_run(request: HttpRequest) -> bool:
    return "dry_run" in request.POST


def _trusts(request: HttpRequest) -> bool:
    return "trust_foreign" in request.POST


def _created(report: SeedReport) -> SeedAnswer:
    requested = counted(len(report.requests), "capability", "capabilities")
    asks = f" It asks for {requested}; none is granted." if report.requests else ""
    if report.dry_run:
        return SeedAnswer(text=f"{report.name} would be created: {_rows_of(report)}{asks}")
    return SeedAnswer(
        text=f"{report.name} is created: {_rows_of(report)}{asks}",
        address=cells.page_of("agents_agent", report.agent_id),
    )


def _rows_of(report: SeedReport) -> str:
    """Return the rows of a report, and the rows that were left out, as sentences."""
    # The counts come last, because the names are plurals.
    rows = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in report.rows.items() if count)
    dropped = ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in report.dropped.items())
    left_out = f" Left out, because what they refer to is missing: {dropped}." if dropped else ""
    return f"{rows or 'nothing'}.{left_out}"


def _merged(report: MergeReport) -> str:
    verb = "would get" if report.dry_run else "got"
    known, conflicts = sum(report.known.values()), len(report.conflicts)
    expired = f" Left out because they have expired: {report.expired}." if report.expired else ""
    postponed = counted(report.postponed, "proposal has", "proposals have")
    later = f" {postponed} no room: merge again later." if report.postponed else ""
    memories = counted(report.memories, "memory", "memories")
    return (
        f"{report.name} {verb} {memories} and {counted(report.proposals, 'proposal')} from {report.from_name};"
        f" {known} known already, {conflicts} in conflict.{expired}{later}"
    )
