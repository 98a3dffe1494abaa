"""The configuration of the app `authority`."""

from django.apps import AppConfig


class AuthorityConfig(AppConfig):
    """The app of capabilities, trust and approvals."""

    name = "apps.authority"
    verbose_name = "Authority"
