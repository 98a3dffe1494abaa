"""The configuration of the app `fleet`."""

from django.apps import AppConfig


class FleetConfig(AppConfig):
    """The app of whole agents and their seeds."""

    name = "apps.fleet"
    verbose_name = "Fleet"
