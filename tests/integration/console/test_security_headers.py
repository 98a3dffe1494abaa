"""The content security policy of the console, and the checks of a deployment behind TLS."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from django.test import Client
from django.urls import reverse

from config.environment import BASE_DIR

TEMPLATES = sorted((BASE_DIR / "apps" / "console" / "templates").rglob("*.html"))
INLINE = re.compile(r"\s(?:style|on[a-z]+)=[\"']|<style|<script(?![^>]*\ssrc=)")


def test_pages_forbid_inline_scripts_and_styles(client: Client, database: None) -> None:
    policy = client.get(reverse("admin:login")).headers["Content-Security-Policy"]
    assert "default-src 'none'; script-src 'self' 'unsafe-eval'; style-src 'self';" in policy
    assert "frame-ancestors 'none'" in policy
    assert "unsafe-inline" not in policy


@pytest.mark.parametrize("template", TEMPLATES, ids=lambda template: template.name)
def test_templates_have_no_inline_scripts_or_styles(template: Path) -> None:
    assert INLINE.search(template.read_text(encoding="utf-8")) is None


def test_a_deployment_behind_tls_passes_djangos_checks() -> None:
    checked = subprocess.run(
        [sys.executable, "manage.py", "check", "--deploy", "--fail-level", "INFO"],
        cwd=BASE_DIR,
        env={
            "PATH": os.environ["PATH"],
            "ARBOR_ENV_FILE": "",
            "ARBOR_MASTER_KEY": "a" * 43 + "=",
            "ALLOWED_HOSTS": "arbor.example.org",
            "CSRF_TRUSTED_ORIGINS": "https://arbor.example.org",
        },
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr
