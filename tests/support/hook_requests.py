"""Deliveries as GitHub and other systems send them, signed, with bodies shaped as those systems document them."""

from __future__ import annotations

import hashlib
import hmac
import json
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from typing import Any
from urllib.parse import urlencode

from django.test import Client

from arbor.contacts.hooks import HOOKS_PATH
from arbor.contacts.standard_webhooks import signed_headers

_REPOSITORY = {
    "id": 186853002,
    "name": "river",
    "full_name": "octo-org/river",
    "private": False,
    "html_url": "https://github.com/octo-org/river",
    "owner": {"login": "octo-org", "type": "Organization"},
}
_SENDER = {"login": "octocat", "id": 583231, "type": "User"}
_COMMON: dict[str, Any] = {"repository": _REPOSITORY, "sender": _SENDER}
_ISSUE = {
    "number": 7,
    "title": "The weir leaks",
    "body": "Since the thaw, water passes below the gate.",
    "html_url": "https://github.com/octo-org/river/issues/7",
    "state": "open",
    "user": _SENDER,
    "labels": [{"name": "bug"}],
}
_PULL_REQUEST = {
    "number": 8,
    "title": "Seal the gate",
    "body": "Closes #7",
    "html_url": "https://github.com/octo-org/river/pull/8",
    "merged": True,
    "draft": False,
    "user": _SENDER,
}
#: The bodies of GitHub's events, by their names.
GITHUB_BODIES: Mapping[str, dict[str, Any]] = {
    "ping": {"zen": "Keep it logically awesome.", "hook_id": 1, "hook": {"type": "Repository"}, **_COMMON},
    "push": {
        "ref": "refs/heads/main",
        "before": "6113728f27ae82c7b1a177c8d03f9e96e0adf246",
        "after": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",
        "created": False,
        "deleted": False,
        "forced": False,
        "compare": "https://github.com/octo-org/river/compare/6113728f27ae...0d1a26e67d8f",
        "commits": [
            {
                "id": "0d1a26e67d8f5eaf1f6ba5c57fc3c7d91ac0fd1c",
                "message": "Measure the weir\n\nTwice a day.",
                "author": {"name": "Ann", "email": "ann@example.org"},
                "added": [],
                "modified": ["weir.py"],
            },
            {"id": "1c002dd4b536", "message": "Log levels", "author": {"name": "Bob"}},
        ],
        "pusher": {"name": "octocat", "email": "octocat@example.org"},
        **_COMMON,
    },
    "issues": {"action": "opened", "issue": _ISSUE, **_COMMON},
    "issue_comment": {
        "action": "created",
        "issue": _ISSUE,
        "comment": {
            "body": "I saw it too.",
            "html_url": "https://github.com/octo-org/river/issues/7#issuecomment-1",
            "user": _SENDER,
        },
        **_COMMON,
    },
    "pull_request": {"action": "closed", "number": 8, "pull_request": _PULL_REQUEST, **_COMMON},
    "pull_request_review": {
        "action": "submitted",
        "review": {
            "state": "changes_requested",
            "body": "The seal needs a test.",
            "html_url": "https://github.com/octo-org/river/pull/8#pullrequestreview-1",
            "user": {"login": "hubot"},
        },
        "pull_request": _PULL_REQUEST,
        **_COMMON,
    },
    "release": {
        "action": "published",
        "release": {
            "tag_name": "v1.2.0",
            "name": "Thaw",
            "body": "The gate is tight.",
            "html_url": "https://github.com/octo-org/river/releases/tag/v1.2.0",
        },
        **_COMMON,
    },
    "workflow_run": {
        "action": "completed",
        "workflow_run": {
            "name": "CI",
            "display_title": "Seal the gate",
            "head_branch": "main",
            "status": "completed",
            "conclusion": "failure",
            "html_url": "https://github.com/octo-org/river/actions/runs/30433642",
        },
        **_COMMON,
    },
}


@dataclass(frozen=True, kw_only=True)
class SignedRequest:
    """A delivery, ready to be posted."""

    body: bytes
    headers: dict[str, str]
    content_type: str = "application/json"

    def post(self, key: str, headers: Mapping[str, str] | None = None) -> Any:
        """Post the request to a hook; `headers` replace its own."""
        given = {**self.headers, **(headers or {})}
        return Client().post(
            f"{HOOKS_PATH}{key}", data=self.body, content_type=self.content_type, headers=given
        )


@dataclass(frozen=True, kw_only=True)
class GithubSender:
    """GitHub, with the secret of a hook."""

    secret: str
    numbers: Iterator[int] = field(default_factory=lambda: count(1))

    def request(self, event: str, *, form: bool = False, **changes: Any) -> SignedRequest:
        """Return a delivery of an event, as JSON or, as GitHub's default is, as a form."""
        text = json.dumps({**GITHUB_BODIES.get(event, _COMMON), **changes})
        body = urlencode({"payload": text}).encode() if form else text.encode()
        return SignedRequest(
            body=body,
            headers={
                "X-GitHub-Event": event,
                "X-GitHub-Delivery": f"72d3162e-cc78-11e3-81ab-{next(self.numbers):012d}",
                "X-Hub-Signature-256": f"sha256={hex_signature(self.secret, body)}",
                "User-Agent": "GitHub-Hookshot/044aadd",
            },
            content_type="application/x-www-form-urlencoded" if form else "application/json",
        )


def standard_request(
    secret: str, body: Any, *, message_id: str = "msg_1", at: float | None = None
) -> SignedRequest:
    """Return a delivery by Standard Webhooks; `body` is JSON, or bytes."""
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    moment = int(time.time() if at is None else at)
    return SignedRequest(body=raw, headers=signed_headers(secret, message_id=message_id, at=moment, body=raw))


def hex_signature(secret: str, body: bytes) -> str:
    """Return the HMAC of a body in hexadecimal."""
    return hmac.new(secret.encode(), body, hashlib.sha256).hexdigest()
