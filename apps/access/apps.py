"""The configuration of the app `access`."""

from django.apps import AppConfig


class AccessConfig(AppConfig):
    """The app of API tokens."""

    name = "apps.access"
    verbose_name = "API access"
