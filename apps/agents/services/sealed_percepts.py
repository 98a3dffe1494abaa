"""Seal messages of agents to other agents of the tenant, and open them when a heartbeat of their receiver begins."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any
from uuid import UUID

import structlog

from apps.agents.models import Percept, PerceptKind
from apps.agents.services.identity_column import IDENTITY_COLUMN, AgentIdentity, parse_identity
from apps.tenants.keys import master_keys
from apps.tenants.scope import current_tenant
from apps.tenants.statements import fetch
from arbor.agents.identity import PrivateKey, open_private_key
from arbor.agents.keys import ChainKey, KeyPurpose, key_label
from arbor.agents.sealed_messages import MessageRoute, SealedMessage, open_message, seal_message
from arbor.errors import IdentityRefused, MessageRefused, NotFound, SealBroken
from arbor.heartbeat.views import PERCEPT_LENGTH
from arbor.ids import uuid7
from arbor.sealing import SealedRecord

log = structlog.get_logger(__name__)

#: Shown where a message is sealed.
CLOSED = "(sealed until the agent takes it in)"

#: The parts that open the sealed message of a percept `w`; null for other percepts. Needs `%(tenant)s`. The number of the key is
#: compared as text, because the record may be damaged.
SEALED_COLUMN = f"""CASE WHEN w.sealed IS NOT NULL THEN json_build_object('record', w.sealed,
            'sender', (SELECT public_id FROM agents_agent WHERE tenant_id = %(tenant)s AND id = w.peer_id),
            'identity', (SELECT {IDENTITY_COLUMN} FROM (SELECT w.peer_id AS id) a),
            'key', (SELECT k.sealed_private_key FROM agents_agentkey k WHERE k.tenant_id = %(tenant)s AND k.agent_id = w.agent_id
                AND k.purpose = 'exchange' AND k.number::text = w.sealed->>'sealed_for')
        ) END"""  # noqa: S608 (no external input)
_CORRESPONDENTS = f"""
SELECT a.id, a.name, a.public_id, {IDENTITY_COLUMN}, (
    SELECT json_build_array(k.number, encode(k.public_key, 'hex'), encode(k.previous_signature, 'hex')) FROM agents_agentkey k
    WHERE k.tenant_id = %(tenant)s AND k.agent_id = a.id AND k.purpose = 'exchange' ORDER BY k.number DESC LIMIT 1
)
FROM agents_agent a WHERE a.tenant_id = %(tenant)s AND a.id = ANY(%(agents)s::uuid[])
"""  # noqa: S608 (no external input)


@dataclass(frozen=True, kw_only=True, slots=True)
class RefusedMessage:
    """A message that was not opened, and the reason."""

    percept_id: UUID
    #: The name of the agent that the percept names as sender; empty if that agent was destroyed.
    sender: str
    reason: str


@dataclass(frozen=True, kw_only=True, slots=True)
class _Correspondent:
    name: str
    identity: AgentIdentity
    exchange: ChainKey | None


def seal_percept(
    *, sender_id: UUID, receiver_id: UUID, content: str, detail: Mapping[str, Any], urgent: bool = False
) -> Percept:
    """Create the percept of a message to another agent of the tenant, sealed for it and signed by its sender; not stored.

    One statement. Raises NotFound, IdentityRefused unless both identities are endorsed and active, and SealBroken.
    """
    found = _correspondents(sender_id, receiver_id)
    sender, receiver = found[sender_id], found[receiver_id]
    for correspondent in (sender, receiver):
        _require_active(correspondent)
    if receiver.exchange is None:
        raise IdentityRefused(f"{receiver.name} has no exchange key, so nobody can write to it")
    receiver.identity.chain.verify_exchange(receiver.exchange)
    signing = sender.identity.signing_key()
    message_id = uuid7()
    sealed = seal_message(
        content,
        route=MessageRoute(
            tenant_id=str(current_tenant()),
            message_id=str(message_id),
            sender=signing.public_id,
            receiver=receiver.identity.chain.public_id,
        ),
        at=datetime.now(UTC),
        sealed_for=receiver.exchange.number,
        exchange_public=receiver.exchange.public,
        signed_by=signing.number,
        sign=signing.sign,
    )
    return Percept(
        id=message_id,
        tenant_id=current_tenant(),
        agent_id=receiver_id,
        peer_id=sender_id,
        kind=PerceptKind.PEER_MESSAGE,
        sealed=sealed.to_json(),
        detail=dict(detail),
        urgent=urgent,
    )


def open_percepts(
    percepts: Iterable[Mapping[str, Any]], *, receiver: str
) -> tuple[list[dict[str, Any]], list[RefusedMessage]]:
    """Open the sealed messages among percepts, given with their `SEALED_COLUMN`; return the percepts and the refused messages.

    `receiver` is the public id of their agent. A message whose key does not open under the master key of this process stays
    pending, and is left out.
    """
    shown: list[dict[str, Any]] = []
    refused: list[RefusedMessage] = []
    for row in percepts:
        percept = dict(row)
        sealed = percept.pop("sealed", None)
        if sealed is None and percept["kind"] != PerceptKind.PEER_MESSAGE:
            shown.append(percept)
            continue
        try:
            if sealed is None:
                raise MessageRefused("it is not sealed, so nobody has signed it")
            content = _open_text(percept["id"], sealed, receiver)
        except (MessageRefused, IdentityRefused) as error:
            reason = str(error)
            refused.append(
                RefusedMessage(percept_id=UUID(percept["id"]), sender=percept["peer"], reason=reason)
            )
        except SealBroken as error:
            log.warning("message_not_opened", percept_id=percept["id"], reason=str(error))
        else:
            shown.append(percept | {"content": content, "was_sealed": True})
    return shown, refused


def close_percepts(percepts: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return percepts, given with their `SEALED_COLUMN`, for people: sealed messages stay closed."""
    return [
        {name: value for name, value in percept.items() if name != "sealed"}
        | ({"content": CLOSED} if percept["sealed"] else {})
        for percept in percepts
    ]


def _correspondents(*agent_ids: UUID) -> dict[UUID, _Correspondent]:
    tenant = str(current_tenant())
    found = {
        agent_id: _Correspondent(
            name=name,
            identity=parse_identity(identity, public_id=public_id, tenant_id=tenant),
            exchange=_exchange_key(key),
        )
        for agent_id, name, public_id, identity, key in fetch(_CORRESPONDENTS, agents=sorted(agent_ids))
    }
    for agent_id in agent_ids:
        if agent_id not in found:
            raise NotFound(f"there is no agent {agent_id} in this tenant")
    return found


def _exchange_key(key: Sequence[Any] | None) -> ChainKey | None:
    if key is None:
        return None
    number, public, signature = key
    return ChainKey(number=number, public=bytes.fromhex(public), signature=bytes.fromhex(signature))


def _require_active(correspondent: _Correspondent) -> None:
    if refusal := correspondent.identity.refusal:
        raise IdentityRefused(f"{correspondent.name} neither writes nor is written to: {refusal}")


def _open_text(percept_id: str, sealed: Mapping[str, Any], receiver: str) -> str:
    """Return the text of a sealed message. Raises MessageRefused, IdentityRefused and SealBroken."""
    if sealed["sender"] is None:
        raise MessageRefused("the agent that sent the message is no more")
    tenant = str(current_tenant())
    identity = parse_identity(sealed["identity"], public_id=sealed["sender"], tenant_id=tenant)
    identity.require_active()
    message = SealedMessage.from_json(sealed["record"])
    signing = identity.chain.key(message.signed_by)
    if signing is None:
        raise MessageRefused(f"{sealed['sender']} has no signing key {message.signed_by}")
    if not sealed["key"]:
        raise MessageRefused(f"the exchange key {message.sealed_for} of {receiver} has been deleted")
    private: PrivateKey = open_private_key(
        SealedRecord.from_json(sealed["key"]),
        keys=master_keys(),
        agent_public_id=receiver,
        tenant_id=tenant,
        label=key_label(KeyPurpose.EXCHANGE, message.sealed_for),
    )
    route = MessageRoute(tenant_id=tenant, message_id=percept_id, sender=sealed["sender"], receiver=receiver)
    text = open_message(message, route=route, signing_public=signing.public, exchange_private=private)
    if len(text) > PERCEPT_LENGTH or "\0" in text:
        raise MessageRefused(f"a message has at most {PERCEPT_LENGTH:,} characters and no NUL")
    return text
