"""The configuration of the app `calls`."""

from django.apps import AppConfig


class CallsConfig(AppConfig):
    """The app of model calls and their cost."""

    name = "apps.calls"
    verbose_name = "Model calls"
