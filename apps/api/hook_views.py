"""The address at which other systems post what an agent should perceive; the signature is the authentication."""

from __future__ import annotations

import math
from http import HTTPStatus
from uuid import UUID

from django.conf import settings
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.views.decorators.csrf import csrf_exempt

from apps.api.problems import problem, problem_of
from apps.api.rates import limiter
from apps.contacts.services.hook_reception import HookReceipt, HookRequest, receive_delivery
from arbor.contacts.hooks import HookDeliveryStatus
from arbor.errors import ArborError, RateLimited, SignatureRefused
from arbor.quotations import counted

#: The same for an unknown hook and for a wrong signature, so that answers do not reveal hooks.
_REFUSED = (
    "there is no such hook, or the signature is not right; the hook's page in the console has the reason"
)


@csrf_exempt
def post_to_hook(request: HttpRequest, key: str) -> HttpResponse:
    """Receive a delivery; 200 instead of 202 for one that had arrived before."""
    if request.method != "POST":
        return HttpResponse(status=HTTPStatus.METHOD_NOT_ALLOWED, headers={"Allow": "POST"})
    most: int = settings.ARBOR_HOOK_BODY_BYTES
    if len(request.body) > most:
        return problem(
            request, status=HTTPStatus.CONTENT_TOO_LARGE, detail=f"a delivery has at most {most} bytes"
        )
    headers = {name.lower(): value for name, value in request.headers.items()}
    try:
        receipt = receive_delivery(
            HookRequest(key=key, headers=headers, body=request.body), count=_count_delivery
        )
    except SignatureRefused:
        return problem(request, status=HTTPStatus.UNAUTHORIZED, detail=_REFUSED, kind="signature-refused")
    except ArborError as error:
        return problem_of(request, error)
    return _answer(request, receipt)


def _count_delivery(hook_id: UUID) -> None:
    """Count a delivery against the limit of its hook. Raises RateLimited."""
    most: int = settings.ARBOR_HOOK_PER_MINUTE
    wait = math.ceil(limiter.seconds_to_wait({hook_id: most}))
    if wait:
        raise RateLimited(
            f"a hook receives {counted(most, 'delivery', 'deliveries')} a minute; try again in {wait} s",
            retry_after_s=wait,
        )


def _answer(request: HttpRequest, receipt: HookReceipt) -> HttpResponse:
    if receipt.status is HookDeliveryStatus.FAILED:
        return problem(
            request, status=HTTPStatus.UNPROCESSABLE_ENTITY, detail=receipt.error, kind="delivery-failed"
        )
    return JsonResponse(
        {
            "delivery_id": str(receipt.delivery_id),
            "status": receipt.status.value,
            "repeated": receipt.repeated,
        },
        status=HTTPStatus.OK if receipt.repeated else HTTPStatus.ACCEPTED,
    )
