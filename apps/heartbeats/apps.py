"""The configuration of the app `heartbeats`."""

from django.apps import AppConfig


class HeartbeatsConfig(AppConfig):
    """The app of heartbeats."""

    name = "apps.heartbeats"
    verbose_name = "Heartbeats"
