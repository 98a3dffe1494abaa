"""Fixtures that start real processes."""

from tests.acceptance.local_model import local_model_server
from tests.integration.conftest import cleaner, database, django_db_setup, postgres, tenant

__all__ = ["cleaner", "database", "django_db_setup", "local_model_server", "postgres", "tenant"]
