"""The mail server, as the settings name it."""

from __future__ import annotations

from typing import Any

import pytest

from arbor.errors import ConfigurationInvalid
from config.mail import mailers

GIVEN: dict[str, Any] = {
    "host": "mail.example.org",
    "port": 0,
    "user": "",
    "password": "",
    "security": "starttls",
    "timeout_s": 15.0,
    "sender": "arbor@example.org",
}


def test_without_a_host_there_is_no_mail_server() -> None:
    assert mailers(**{**GIVEN, "host": "", "sender": ""}) == {}


@pytest.mark.parametrize(
    ("security", "options"), [("starttls", {"use_tls": True}), ("tls", {"use_ssl": True}), ("none", {})]
)
def test_a_server_is_asked_in_the_way_that_is_set(security: str, options: dict[str, bool]) -> None:
    made = mailers(**{**GIVEN, "security": security, "port": 2525, "user": "u", "password": "p"})
    assert made["default"]["OPTIONS"] == {
        "host": "mail.example.org",
        "port": 2525,
        "timeout": 15.0,
        "username": "u",
        "password": "p",
        **options,
    }


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        ({"security": "ssl"}, "starttls, tls, none; got 'ssl'"),
        ({"timeout_s": 0.0}, "above 0 and at most 30, got 0"),
        ({"timeout_s": 31.0}, "above 0 and at most 30, got 31"),
        ({"sender": ""}, "must be an email address, got ''"),
    ],
)
def test_what_cannot_be_is_refused_with_what_would_be_right(wrong: dict[str, Any], told: str) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        mailers(**{**GIVEN, **wrong})
    assert told in str(refused.value)
