"""Django's name for this app."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Holds the models of agents."""

    name = "apps.agents"
    verbose_name = "Agents"
