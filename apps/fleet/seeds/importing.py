"""Import a seed as a new agent, with an identity of its own, and the memories, goals and self of the seed."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from uuid import UUID

from django.conf import settings
from django.db import IntegrityError, transaction

from apps.agents.models import Agent, AgentState, RequestedCapability
from apps.agents.services.identity_creation import NewIdentity, create_identities
from apps.agents.services.lookup import valid_name
from apps.audit.models import AuditAction
from apps.audit.services import record
from apps.authority.services.trust_tiers import create_tiers
from apps.fleet.policy import check_policy
from apps.fleet.seeds.capture import CaptureOptions
from apps.fleet.seeds.checks import Values
from apps.fleet.seeds.exporting import export_seed
from apps.fleet.seeds.files import VerifiedSeed, receive_seed
from apps.fleet.seeds.profiles import checked_profile, interval_of
from apps.fleet.seeds.refusals import audit_refusals
from apps.fleet.seeds.restoring import STATEMENT_TIMEOUT, SeedReport, has_comparable_vectors, known_ids
from apps.fleet.seeds.saving import temporary_file
from apps.fleet.seeds.sections import PROFILE, REQUESTS, SeedGroup
from apps.fleet.seeds.writing import RowWriter, ensure_mind
from apps.heartbeats.services.schedule import create_schedules
from apps.memories.services.embedding.minds import installation_model
from apps.memories.services.store.term_counts import lock_minds
from apps.signals.services.emission import emit
from apps.tenants.scope import APP, current_tenant, tenant_transaction
from apps.tenants.services import require_active
from arbor.agents.capabilities import CapabilityUri
from arbor.agents.genome import PROSE_LENGTH
from arbor.agents.identity import KeyPair, generate_key_pair
from arbor.errors import AlreadyExists, CapabilityInvalid, Invalid, SeedInvalid
from arbor.ids import uuid7
from arbor.seeds.id_mapping import IdMapping
from arbor.signals import SignalName, label, signal

#: The most capabilities that a seed may ask for.
_MAX_REQUESTS = 1000


@dataclass(frozen=True, kw_only=True)
class ImportOptions:
    """Options of an import: the name of the agent, trust in a seed of another installation, and a dry run, which only reports."""

    #: Empty: the name in the seed.
    name: str = ""
    trust_foreign: bool = False
    dry_run: bool = False


def import_seed(*, tenant_id: UUID, seed: VerifiedSeed, options: ImportOptions, actor: str) -> SeedReport:
    """Create an agent from a seed, with new keys and new ids; it has no heartbeats before it is started.

    Nothing is granted to it: the capabilities that it asks for are listed in the report. Raises SeedInvalid for a seed of
    another installation that is not trusted, AlreadyExists for the name, Invalid, and TransitionIllegal where the tenant is
    suspended.
    """
    with audit_refusals(tenant_id=tenant_id, actor=actor):
        if not (seed.is_own or options.trust_foreign):
            raise SeedInvalid(
                "the seed is signed by another installation; read where it comes from, and import it with --trust-foreign"
            )
        with tenant_transaction(tenant_id, statement_timeout=STATEMENT_TIMEOUT):
            report = _import(seed, options, AuditAction.SEED_IMPORTED, actor)
            if options.dry_run:
                transaction.set_rollback(True, using=APP)
            return report


def fork_agent(
    *, tenant_id: UUID, agent_id: UUID, name: str, actor: str, with_vectors: bool = True
) -> SeedReport:
    """Create a copy of an agent with its memories, goals and self, and an identity of its own.

    Raises NotFound, IdentityRefused, AlreadyExists for the name, Invalid, TransitionIllegal where the tenant is suspended.
    """
    with temporary_file() as file:
        options = CaptureOptions(reason="fork", with_vectors=with_vectors)
        export_seed(tenant_id=tenant_id, agent_id=agent_id, output=file, options=options, actor=actor)
        seed = receive_seed(file, tenant_id=tenant_id, actor=actor)
        with (
            audit_refusals(tenant_id=tenant_id, actor=actor),
            tenant_transaction(tenant_id, statement_timeout=STATEMENT_TIMEOUT),
        ):
            return _import(seed, ImportOptions(name=name), AuditAction.SEED_FORKED, actor)


def _import(seed: VerifiedSeed, options: ImportOptions, action: AuditAction, actor: str) -> SeedReport:
    require_active()
    header = seed.manifest.header
    pair = generate_key_pair()
    agent = Agent(id=uuid7(), tenant_id=current_tenant(), public_id=pair.public_id)
    requests = _create_agent(agent, pair, _read_first_sections(seed), options)
    lock_minds([agent.id])
    model = installation_model()
    ensure_mind(agent.id, tenant_id=agent.tenant_id, model=model)
    writer = RowWriter(
        agent_id=agent.id,
        model=model,
        carries_vectors=has_comparable_vectors(seed, model),
        groups=frozenset(SeedGroup) - {SeedGroup.PROFILE},
        mapping=IdMapping(
            own=frozenset(row_id for ids in seed.ids.values() for row_id in ids),
            agent=(header.agent_id, agent.id),
            texts={header.public_id: agent.public_id},
        ),
        known=known_ids(seed, frozenset(SeedGroup), agent.id),
        # The agent of the seed answers its pending percepts; its copy does not know who sent them.
        skipped=frozenset({"percepts"}),
    )
    writer.write(seed.rows())
    try:
        check_policy(agent.id)
    except (Invalid, ValueError) as error:
        raise SeedInvalid(f"the policy of the seed cannot be used: {error}") from error
    if "state" not in writer.written:
        AgentState.objects.create(tenant_id=agent.tenant_id, agent=agent)
    report = SeedReport(
        agent_id=agent.id,
        name=agent.name,
        digest=seed.manifest.trailer.digest,
        rows=writer.written,
        with_vectors=writer.carries_vectors,
        dry_run=options.dry_run,
        dropped=writer.dropped,
        unknown={name: tuple(sorted(columns)) for name, columns in writer.unknown.items()},
        requests=requests,
    )
    _record(agent, seed, report, action, actor)
    return report


def _read_first_sections(seed: VerifiedSeed) -> dict[str, list[Values]]:
    """Return the rows of the first sections of a seed: the profile and the requested capabilities."""
    found: dict[str, list[Values]] = {PROFILE: [], REQUESTS: []}
    for row in seed.rows():
        if row.section not in found:
            break
        found[row.section].append(row.values)
    if len(found[PROFILE]) != 1:
        raise SeedInvalid("a seed begins with the profile of its agent, and this one does not")
    if len(found[REQUESTS]) > _MAX_REQUESTS:
        raise SeedInvalid(f"a seed asks for at most {_MAX_REQUESTS} capabilities")
    return found


def _create_agent(
    agent: Agent,
    pair: KeyPair,
    first_sections: dict[str, list[Values]],
    options: ImportOptions,
) -> tuple[str, ...]:
    """Store the agent with its identity, schedule and requests, and return the requested capabilities."""
    (profile,) = first_sections[PROFILE]
    checked = checked_profile(profile)
    for column, value in checked.items():
        setattr(agent, column, value)
    agent.name = valid_name(options.name or checked["name"])
    # Publication is a decision about one agent, which its copy does not share.
    agent.published = False
    name_in_use = AlreadyExists(f"this tenant has an agent {agent.name!r} already; choose another name")
    if Agent.objects.filter(name__iexact=agent.name).exists():
        raise name_in_use
    try:
        with transaction.atomic():
            agent.save(force_insert=True)
    except IntegrityError as error:
        raise name_in_use from error
    now = datetime.now(UTC)
    create_identities([NewIdentity(agent=agent, pair=pair)], now=now)
    create_tiers([agent], now=now)
    interval_s = interval_of(profile)
    interval = settings.ARBOR_HEARTBEAT_INTERVAL if interval_s is None else timedelta(seconds=interval_s)
    create_schedules(intervals={agent: interval}, now=now)
    rows = [_request(agent, values) for values in first_sections[REQUESTS]]
    RequestedCapability.objects.bulk_create(rows)
    return tuple(row.resource for row in rows)


def _request(agent: Agent, values: Values) -> RequestedCapability:
    try:
        resource = str(CapabilityUri.parse(str(values.get("resource"))))
    except CapabilityInvalid as error:
        raise SeedInvalid(f"the seed asks for what is no capability: {error}") from error
    constraints = values.get("constraints")
    return RequestedCapability(
        tenant_id=agent.tenant_id,
        agent=agent,
        resource=resource,
        description=str(values.get("description", ""))[:PROSE_LENGTH],
        constraints=constraints if isinstance(constraints, dict) else {},
    )


def _record(agent: Agent, seed: VerifiedSeed, report: SeedReport, action: AuditAction, actor: str) -> None:
    header = seed.manifest.header
    verb = "forked" if action is AuditAction.SEED_FORKED else "imported"
    record(
        action=action,
        actor=actor,
        agent_id=agent.id,
        message=f"{verb} {agent.name} from a seed of {header.name}",
        detail={
            "digest": report.digest,
            "rows": report.rows,
            "from_agent": str(header.agent_id),
            "from_public_id": header.public_id,
            "public_id": agent.public_id,
            "own_installation": seed.is_own,
        },
    )
    emit(
        signal(
            SignalName.AGENT_CREATED,
            agent.id,
            name=agent.name,
            template=label(agent.template_name),
            actor=actor,
        )
    )
