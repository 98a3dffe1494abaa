"""Export, verify, import, restore, fork, compare, merge, save, list and delete seeds."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from tempfile import NamedTemporaryFile
from typing import BinaryIO
from uuid import UUID

from django.db.models import Q
from rich.markup import escape

from apps.fleet.models import SavedSeed
from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.exporting import export_seed
from apps.fleet.seeds.files import VerifiedSeed, compare_seeds, receive_seed
from apps.fleet.seeds.importing import ImportOptions, fork_agent, import_seed
from apps.fleet.seeds.merging import MergeOptions, merge_seed
from apps.fleet.seeds.restoring import RestoreOptions, SeedReport, restore_seed
from apps.fleet.seeds.saving import delete_saved_seed, open_saved_seed, save_seed
from apps.fleet.seeds.sections import SeedGroup
from apps.tenants.models import Tenant
from apps.tenants.scope import tenant_transaction
from arbor.errors import Invalid, NotFound, SeedInvalid
from arbor.ids import read_id
from arbor.quotations import counted
from arbor.seeds.diff import SectionDifference
from arbor.seeds.manifest import SeedManifest
from arbor.seeds.saving import SeedReason
from config.cli.kit.columns import OutputColumn, listing, row_to_dict
from config.cli.kit.declarations import Output
from config.cli.kit.output import format_relative_time
from config.cli.kit.tenancy import (
    ChosenAgent,
    actor,
    choose_tenant,
    in_agent_transaction,
    in_tenant_transaction,
    with_agent,
)
from config.cli.memory.archive import counted_memories

SAVED_COLUMNS = (
    OutputColumn("name", "agent"),
    OutputColumn("reason", "saved because of"),
    OutputColumn("at", value=lambda seed: seed.at.isoformat()),
    OutputColumn(head="saved", value=lambda seed: format_relative_time(seed.at)),
    OutputColumn("bytes", "size", cell=lambda size: format_size(size)),
    OutputColumn("rows", "memories", cell=lambda rows: rows.get("memories", 0)),
    OutputColumn("digest", "digest", cell=lambda digest: digest[:12]),
    OutputColumn("actor", "by"),
    OutputColumn("agent_id"),
    OutputColumn("public_id"),
    OutputColumn("id", "id"),
)


def format_size(size: int) -> str:
    """Return a number of bytes as a person reads it."""
    return f"{size / 1e6:.1f} MB" if size >= 100_000 else f"{size / 1e3:.1f} KB"


@contextmanager
def open_seed(text: str, tenant_id: UUID) -> Iterator[VerifiedSeed]:
    """Open and verify a seed: a file, or a saved seed of the tenant by its id. Raises NotFound, SeedInvalid."""
    with _file_of(text, tenant_id) as file:
        with _refuse_unreadable(text):
            seed = receive_seed(file, tenant_id=tenant_id, actor=actor())
        yield seed


def _file_of(text: str, tenant_id: UUID) -> BinaryIO:
    path = Path(text)
    with _refuse_unreadable(text):
        if path.is_dir():
            raise SeedInvalid(f"{path} is a folder; a seed is a file")
        if path.is_file():
            return path.open("rb")
    if (seed_id := read_id(text)) is not None:
        with tenant_transaction(tenant_id):
            return open_saved_seed(seed_id)
    raise NotFound(
        f"there is no file {text!r}, and it is no id of a saved seed; `arbor seed list` shows them"
    )


@contextmanager
def _refuse_unreadable(text: str) -> Iterator[None]:
    """Turn an error of the file system into SeedInvalid."""
    try:
        yield
    except OSError as error:
        raise SeedInvalid(f"{text} cannot be read: {error.strerror}") from error


@with_agent
def export(agent: ChosenAgent, *, file: str, without_vectors: bool) -> Output:
    """Write an agent to a file, which appears when it is complete."""
    path = Path(file)
    if not path.parent.is_dir():
        raise NotFound(f"there is no folder {str(path.parent)!r} to write {path.name} to")
    options = CaptureOptions(reason="export", with_vectors=not without_vectors)
    try:
        manifest = _write_seed(agent, path, options)
    except OSError as error:
        raise Invalid(f"{path} cannot be written: {error.strerror}") from error
    value = {
        "file": str(path),
        "digest": manifest.trailer.digest,
        "bytes": manifest.bytes,
        "rows": manifest.rows,
    }
    text = (
        f"Exported [bold]{escape(agent.name)}[/bold] to {escape(str(path))}: {format_size(manifest.bytes)},"
        f" {counted_memories(manifest.rows['memories'])}.\n  digest {manifest.trailer.digest}"
    )
    return Output(value, text=text)


def _write_seed(agent: ChosenAgent, path: Path, options: CaptureOptions) -> SeedManifest:
    """Write a seed of the agent to a hidden file beside the path, and rename the file when it is complete."""
    unfinished = NamedTemporaryFile(dir=path.parent, prefix=f".{path.name}.", delete=False)  # noqa: SIM115 (closed below)
    try:
        # Closed before it is renamed: the last bytes may not fit on the disk.
        with unfinished:
            manifest = export_seed(
                tenant_id=agent.tenant_id,
                agent_id=agent.id,
                output=unfinished,
                options=options,
                actor=actor(),
            )
        os.replace(unfinished.name, path)
    except BaseException:
        Path(unfinished.name).unlink()
        raise
    return manifest


def verify(seed: str, tenant_slug: str | None) -> Output:
    """Check a seed and show its manifest."""
    tenant = choose_tenant(tenant_slug)
    with open_seed(seed, tenant.id) as verified:
        manifest, is_own = verified.manifest, verified.is_own
    header = manifest.header
    value = {
        **header.model_dump(mode="json"),
        "digest": manifest.trailer.digest,
        "rows": manifest.rows,
        "bytes": manifest.bytes,
        "uncompressed_bytes": manifest.uncompressed_bytes,
        "own_installation": is_own,
        "authority_key": manifest.signatures.authority.public_key,
    }
    signer = "this installation" if is_own else "[bold]another installation[/bold]"
    vectors = f"vectors of {header.vectors.name}" if header.vectors else "no vectors"
    text = (
        f"A seed of [bold]{escape(header.name)}[/bold], signed by the agent and by {signer}.\n"
        f"  {header.public_id}\n"
        f"  captured {header.captured_at:%Y-%m-%d %H:%M} UTC on {escape(header.captured_on_node)}:"
        f" {escape(header.capture_reason)}\n"
        f"  digest {manifest.trailer.digest}\n"
        f"  {_rows_in_words(manifest.rows)}; {escape(vectors)}"
    )
    return Output(value, text=text)


def import_one(seed: str, name: str, trust_foreign: bool, dry_run: bool, tenant_slug: str | None) -> Output:
    """Create an agent from a seed."""
    tenant = choose_tenant(tenant_slug)
    options = ImportOptions(name=name, trust_foreign=trust_foreign, dry_run=dry_run)
    with open_seed(seed, tenant.id) as verified:
        report = import_seed(tenant_id=tenant.id, seed=verified, options=options, actor=actor())
    return _creation_output(report, "Imported")


@with_agent
def restore(agent: ChosenAgent, *, seed: str, skip: Sequence[str], dry_run: bool) -> Output:
    """Bring an agent back to the state of a seed."""
    options = RestoreOptions(skip=frozenset(map(SeedGroup, skip)), dry_run=dry_run)
    with open_seed(seed, agent.tenant_id) as verified:
        report = restore_seed(
            tenant_id=agent.tenant_id, agent_id=agent.id, seed=verified, options=options, actor=actor()
        )
    verb = "Would restore" if dry_run else "Restored"
    text = f"{verb} [bold]{escape(report.name)}[/bold]: {_rows_in_words(report.rows)}.{_losses(report)}"
    if report.saved_seed_id:
        text += f"\nThe state before is saved: [bold]arbor seed restore NAME {report.saved_seed_id}[/bold]"
    return Output(asdict(report), text=text)


@with_agent
def fork(agent: ChosenAgent, *, name: str) -> Output:
    """Create another agent with the same memories."""
    report = fork_agent(tenant_id=agent.tenant_id, agent_id=agent.id, name=name, actor=actor())
    return _creation_output(report, "Forked")


def diff(first: str, second: str, tenant_slug: str | None) -> Output:
    """Compare two seeds."""
    tenant = choose_tenant(tenant_slug)
    with open_seed(first, tenant.id) as before, open_seed(second, tenant.id) as after:
        sections = compare_seeds(before, after)
        digests = [seed.manifest.trailer.digest for seed in (before, after)]
    changed = [section for section in sections if section.added or section.removed or section.changed]
    value = {"digests": digests, "equal": digests[0] == digests[1], "sections": list(map(asdict, changed))}
    return Output(value, text="\n".join(map(_section_in_words, changed)) or "No differences.")


@with_agent
def merge(agent: ChosenAgent, *, seed: str, trust_foreign: bool, dry_run: bool) -> Output:
    """Merge what the agent of a seed learned into an agent."""
    options = MergeOptions(trust_foreign=trust_foreign, dry_run=dry_run)
    with open_seed(seed, agent.tenant_id) as verified:
        report = merge_seed(
            tenant_id=agent.tenant_id, agent_id=agent.id, seed=verified, options=options, actor=actor()
        )
    verb = "Would merge" if dry_run else "Merged"
    lines = [
        f"{verb} from [bold]{escape(report.from_name)}[/bold] into [bold]{escape(report.name)}[/bold]:"
        f" {counted_memories(report.memories)}, {counted(report.proposals, 'proposal')}; {sum(report.known.values())} known already."
    ]
    lines += [
        f"  conflict in {conflict.section}: {escape(conflict.subject)}: {escape(conflict.own)} stays, not"
        f" {escape(conflict.other)}"
        for conflict in report.conflicts
    ]
    if report.expired:
        lines.append(f"  left out, because expired: {counted_memories(report.expired)}")
    if report.postponed:
        lines.append(
            f"  {report.postponed} of the beliefs and preferences had no room among the proposals: merge again later"
        )
    return Output(asdict(report), text="\n".join(lines))


@in_agent_transaction
def save(agent: ChosenAgent) -> Output:
    """Save a seed of an agent."""
    saved = save_seed(agent_id=agent.id, reason=SeedReason.REQUESTED, actor=actor())
    text = f"Saved a seed of [bold]{escape(saved.name)}[/bold], {format_size(saved.bytes)}: {saved.id}"
    return Output(row_to_dict(saved, SAVED_COLUMNS), text=text)


@in_tenant_transaction
def list_saved(_tenant: Tenant, *, agent: str | None) -> Output:
    """List the saved seeds."""
    rows = SavedSeed.objects.filter(Q() if agent is None else Q(name__iexact=agent)).order_by("-at", "-id")
    return listing(
        "seeds", list(rows), SAVED_COLUMNS, empty="No saved seeds. [bold]arbor seed save AGENT[/bold]"
    )


@in_tenant_transaction
def delete(_tenant: Tenant, *, seed_id: UUID) -> Output:
    """Delete a saved seed."""
    deleted = delete_saved_seed(seed_id=seed_id, actor=actor())
    text = f"Deleted the seed of [bold]{escape(deleted.name)}[/bold] of {deleted.at:%Y-%m-%d %H:%M} UTC."
    return Output({"deleted": {"id": seed_id, "name": deleted.name}}, text=text)


def _creation_output(report: SeedReport, verb: str) -> Output:
    text = (
        f"{'Would create' if report.dry_run else verb} [bold]{escape(report.name)}[/bold]:"
        f" {_rows_in_words(report.rows)}.{_losses(report)}"
    )
    if not report.with_vectors:
        text += "\nThe vectors of its memories are computed again by maintenance."
    if report.requests:
        text += (
            f"\nIt asks for {counted(len(report.requests), 'capability', 'capabilities')}; none is granted."
        )
    if not report.dry_run:
        text += f"\nNext: [bold]arbor agent start {escape(shlex.quote(report.name))}[/bold]"
    return Output(asdict(report), text=text)


def _losses(report: SeedReport) -> str:
    lines = [
        f"\n  left out {count} {name}: what they refer to is missing"
        for name, count in report.dropped.items()
    ]
    lines += [
        f"\n  left out of {name}: {escape(', '.join(columns))}" for name, columns in report.unknown.items()
    ]
    return "".join(lines)


def _rows_in_words(rows: Mapping[str, int]) -> str:
    counts = [f"{count} {name.replace('_', ' ')}" for name, count in rows.items() if count]
    return ", ".join(counts) or "nothing"


def _section_in_words(section: SectionDifference) -> str:
    lines = [
        f"[bold]{section.name}[/bold]: {section.added} added, {section.removed} removed,"
        f" {section.changed} changed, {section.same} the same"
    ]
    for example in section.examples:
        lines.append(f"  {example.change} {escape(example.label)}")
        lines += [
            f"    {name}: {escape(str(before)[:100])} → {escape(str(after)[:100])}"
            for name, (before, after) in example.fields.items()
        ]
    return "\n".join(lines)
