"""The configuration of the app `selves`."""

from django.apps import AppConfig


class SelvesConfig(AppConfig):
    """Holds the models of selves."""

    name = "apps.selves"
    verbose_name = "Selves"
