"""The configuration of the app `goals`."""

from django.apps import AppConfig


class GoalsConfig(AppConfig):
    """Holds the models of goals."""

    name = "apps.goals"
    verbose_name = "Goals"
