"""The secrets of the installation by which reflexes stop texts."""

from __future__ import annotations

from typing import Any

from apps.authority.services.reflexes import reflex_terms
from arbor.authority.reflexes import secret_digest
from config.mail import mailers


def test_the_password_of_the_mail_server_is_a_secret(settings: Any) -> None:
    settings.MAILERS = mailers(
        host="mail.example.org",
        port=0,
        user="arbor",
        password="correct-horse-battery",
        security="starttls",
        timeout_s=15,
        sender="arbor@example.org",
    )
    reflex_terms.cache_clear()
    found = reflex_terms().own_secrets
    reflex_terms.cache_clear()
    assert secret_digest("correct-horse-battery") in found
