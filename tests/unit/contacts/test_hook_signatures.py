"""Signatures of deliveries, by the vectors of the specifications and by wrong ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from arbor.contacts.hook_signatures import VerifiedId, check_header, check_secret, verify_delivery
from arbor.contacts.hooks import HookKind
from arbor.contacts.standard_webhooks import signed_headers
from arbor.errors import Invalid, SignatureRefused

NOW = datetime(2026, 11, 23, 9, 0, tzinfo=UTC)
STANDARD = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def verify(headers: dict[str, str], body: bytes, **options: object) -> VerifiedId:
    given = {"kind": HookKind.JSON, "header": "", "secrets": [STANDARD], "now": NOW, **options}
    return verify_delivery(headers=headers, body=body, **given)  # type: ignore[arg-type]


def test_githubs_own_example_is_verified() -> None:
    # https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries
    signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
    verified = verify(
        {"x-hub-signature-256": signature, "x-github-delivery": "72d3"},
        b"Hello, World!",
        kind=HookKind.GITHUB,
        secrets=["It's a Secret to Everybody"],
    )
    assert verified.delivery_id == "72d3"
    assert verified.once_key.startswith("body:")


def test_the_example_of_standard_webhooks_is_verified() -> None:
    # https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md
    at = datetime.fromtimestamp(1614265330, tz=UTC)
    headers = {
        "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
        "webhook-timestamp": "1614265330",
        "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
    }
    verified = verify(headers, b'{"test": 2432232314}', now=at)
    assert verified.once_key == "id:msg_p5jXN8AQM9LWM0D4loKWxJek"
    of_svix = {name.replace("webhook", "svix"): value for name, value in headers.items()}
    assert verify(of_svix, b'{"test": 2432232314}', now=at) == verified


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"webhook-id": ""}, "no header webhook-id"),
        ({"webhook-signature": ""}, "no header webhook-signature"),
        ({"webhook-timestamp": "soon"}, "no signature"),
        ({"webhook-signature": "v2,x v1a,y nonsense"}, "no signature"),
        ({"webhook-signature": "v1,é"}, "no signature"),
        ({"webhook-id": "msg_2"}, "no signature"),
    ],
)
def test_changed_headers_are_refused(changes: dict[str, str], reason: str) -> None:
    headers = signed_headers(STANDARD, message_id="msg_1", at=int(NOW.timestamp()), body=b"{}")
    with pytest.raises(SignatureRefused, match=reason):
        verify({**headers, **changes}, b"{}")


@pytest.mark.parametrize("minutes", [-6, 6, 10_000])
def test_an_old_or_early_time_is_refused(minutes: int) -> None:
    at = int((NOW + timedelta(minutes=minutes)).timestamp())
    headers = signed_headers(STANDARD, message_id="msg_1", at=at, body=b"{}")
    with pytest.raises(SignatureRefused, match="minutes from now"):
        verify(headers, b"{}")
    near = signed_headers(STANDARD, message_id="msg_1", at=int(NOW.timestamp()) + 299, body=b"{}")
    assert verify(near, b"{}").delivery_id == "msg_1"


@pytest.mark.parametrize("at", [-1, 10**30])
def test_an_absurd_time_is_refused(at: int) -> None:
    headers = signed_headers(STANDARD, message_id="msg_1", at=at, body=b"{}")
    with pytest.raises(SignatureRefused, match="Unix seconds"):
        verify(headers, b"{}")


def test_one_of_several_signatures_is_enough() -> None:
    other = "whsec_AAAAAAAAAAAAAAAAAAAAAAAA"
    at = int(NOW.timestamp())
    headers = signed_headers(other, STANDARD, message_id="msg_1", at=at, body=b"{}")
    assert verify(headers, b"{}").delivery_id == "msg_1"
    assert verify(headers, b"{}", secrets=["whsec_BBBB", other]).delivery_id == "msg_1"


def test_wrong_secrets_and_headers_are_refused() -> None:
    check_secret(STANDARD, kind=HookKind.JSON, header="")
    check_secret("sixteen letters!", kind=HookKind.GITHUB, header="")
    for secret, kind, header in (
        ("sixteen letters!", HookKind.JSON, ""),
        ("short", HookKind.GITHUB, ""),
        ("x" * 201, HookKind.JSON, "X-Sig"),
        ("line\nbreak" * 3, HookKind.JSON, "X-Sig"),
    ):
        with pytest.raises(Invalid):
            check_secret(secret, kind=kind, header=header)
    check_header("X-Signature-256")
    for wrong in ("X Sig", "X:Sig", "x" * 61, "é"):
        with pytest.raises(Invalid):
            check_header(wrong)
