"""Django's name for this app."""

from django.apps import AppConfig


class SelvesConfig(AppConfig):
    """Holds the models of selves."""

    name = "apps.selves"
    verbose_name = "Selves"
