"""Fixtures that start real processes."""

from tests.acceptance.local_model import local_model_server

__all__ = ["local_model_server"]
