"""Execute requests once, however often they are sent."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta
from uuid import UUID

from django.utils import timezone

from apps.access.models import IdempotentRequest
from apps.tenants.scope import OPS, current_tenant
from arbor.errors import AlreadyExists, Invalid, RequestUnderway

KEY_LENGTH = 100
#: A stored response is deleted after this time.
STORED_FOR = timedelta(hours=24)
#: A request without a response for this time has lost its process: the next request of its key is carried out.
LOST_AFTER = timedelta(minutes=5)
_DELETED_AT_ONCE = 2_000


@dataclass(frozen=True, kw_only=True)
class RequestKey:
    """A request by its token and its key, with a hash of its method, address and body."""

    token_id: UUID
    key: str
    request_hash: bytes

    def __post_init__(self) -> None:
        """Raise Invalid for a key that cannot be stored."""
        if not 0 < len(self.key) <= KEY_LENGTH or not self.key.isprintable() or not self.key.isascii():
            raise Invalid(f"an idempotency key has 1 to {KEY_LENGTH} printable ASCII characters")


@dataclass(frozen=True, kw_only=True)
class StoredResponse:
    """The response of a request that was carried out."""

    status: int
    body: bytes


def stored_response(request: RequestKey) -> StoredResponse | None:
    """Return the response of a request that was carried out; None for a request that is to be carried out now.

    That is a new request, or one whose process was lost, whose row is deleted. Raises Invalid for a key that another request
    has used, RequestUnderway for one that is being carried out, and AlreadyExists for one whose response had a secret.
    """
    row = IdempotentRequest.objects.filter(token_id=request.token_id, key=request.key).first()
    if row is None:
        return None
    if bytes(row.request_hash) != request.request_hash:
        raise Invalid("the idempotency key was used for another request; use a new key")
    if row.status is None:
        if row.created_at < timezone.now() - LOST_AFTER:
            row.delete()
            return None
        raise RequestUnderway
    if not row.body:
        raise AlreadyExists(
            "the request was carried out; its response had a secret, which is shown only once"
        )
    return StoredResponse(status=row.status, body=bytes(row.body))


def begin_request(request: RequestKey) -> bool:
    """Store a request that begins; return False if another request of its key began at the same time."""
    made = IdempotentRequest.objects.bulk_create(
        [
            IdempotentRequest(
                tenant_id=current_tenant(),
                token_id=request.token_id,
                key=request.key,
                request_hash=request.request_hash,
            )
        ],
        ignore_conflicts=True,
    )
    rows = IdempotentRequest.objects.filter(token_id=request.token_id, key=request.key)
    return rows.filter(id=made[0].id).exists()


def store_response(request: RequestKey, *, response: StoredResponse) -> None:
    """Store the response of a request; its body is empty if it had a secret."""
    IdempotentRequest.objects.update_or_create(
        tenant_id=current_tenant(),
        token_id=request.token_id,
        key=request.key,
        defaults={
            "request_hash": request.request_hash,
            "status": response.status,
            "body": response.body,
        },
    )


def forget_request(request: RequestKey) -> None:
    """Forget a request that failed, so that it can be sent again."""
    IdempotentRequest.objects.filter(token_id=request.token_id, key=request.key, status=None).delete()


def delete_expired_requests(*, now: datetime) -> int:
    """Delete the stored responses of all tenants that have expired, some thousands at most. By the operations role."""
    rows = IdempotentRequest.across.using(OPS)
    old = rows.filter(created_at__lt=now - STORED_FOR).values_list("id", flat=True)
    # `_raw_delete` returns None where it deletes no row.
    return rows.filter(id__in=list(old[:_DELETED_AT_ONCE]))._raw_delete(OPS) or 0
