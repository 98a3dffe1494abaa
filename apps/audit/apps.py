"""The configuration of the app `audit`."""

from django.apps import AppConfig


class AuditConfig(AppConfig):
    """Holds the models of audit."""

    name = "apps.audit"
    verbose_name = "Audit"
