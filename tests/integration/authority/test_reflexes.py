"""The secrets of the installation by which reflexes stop texts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from apps.authority.services import reflexes
from apps.authority.services.reflexes import reflex_terms
from arbor.authority.reflexes import secret_digest
from config.keys import KeySource
from config.mail import mailers
from config.secrets import new_master_key


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
    assert secret_digest("correct-horse-battery") in _own_secrets()


def test_a_rotated_master_key_is_a_secret_at_once(settings: Any, tmp_path: Path) -> None:
    file = tmp_path / "master_key"
    file.write_text(new_master_key())
    file.chmod(0o600)
    settings.ARBOR_MASTER_KEYS = KeySource(file=file)
    before = file.read_text().strip()
    assert secret_digest(before) in reflex_terms().own_secrets
    settings.ARBOR_MASTER_KEYS.begin_rotation()
    found = reflex_terms().own_secrets
    assert {secret_digest(before), secret_digest(file.read_text().strip())} <= found


def test_each_header_of_the_trace_collector_is_a_secret(settings: Any) -> None:
    settings.OTEL_EXPORTER_OTLP_HEADERS = (
        "x-tenant=a-tenant-of-traces , Authorization=Bearer%20correct-horse-battery"
    )
    found = _own_secrets()
    assert {secret_digest("correct-horse-battery"), secret_digest("a-tenant-of-traces")} <= found


def _own_secrets() -> frozenset[bytes]:
    """Return the digests under the changed settings; other tests get those of the usual ones."""
    reflexes._terms_of.cache_clear()
    found = reflex_terms().own_secrets
    reflexes._terms_of.cache_clear()
    return found
