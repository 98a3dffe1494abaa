"""Fixtures for tests that run demo commands as a shell runs them."""

from __future__ import annotations

from tests.integration.cli.conftest import arbor as arbor
