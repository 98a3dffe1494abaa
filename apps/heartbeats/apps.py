"""Django's name for this app."""

from django.apps import AppConfig


class HeartbeatsConfig(AppConfig):
    """Holds the models of heartbeats."""

    name = "apps.heartbeats"
    verbose_name = "Heartbeats"
