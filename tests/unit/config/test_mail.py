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
    settings = mailers(**{**GIVEN, "security": security, "port": 2525, "user": "u", "password": "p"})
    assert settings["default"]["OPTIONS"] == {
        "host": "mail.example.org",
        "port": 2525,
        "timeout": 15.0,
        "username": "u",
        "password": "p",
        **options,
    }


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"security": "ssl"}, "starttls, tls, none; got 'ssl'"),
        ({"timeout_s": 0.0}, "above 0 and at most 30, got 0"),
        ({"timeout_s": 31.0}, "above 0 and at most 30, got 31"),
        ({"sender": ""}, "the address that mails are from, got ''"),
    ],
)
def test_an_invalid_mail_setting_is_refused_with_the_valid_form(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigurationInvalid) as refused:
        mailers(**{**GIVEN, **wrong})
    assert message in str(refused.value)
