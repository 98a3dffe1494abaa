"""The configuration of the app `agents`."""

from django.apps import AppConfig


class AgentsConfig(AppConfig):
    """Holds the models of agents."""

    name = "apps.agents"
    verbose_name = "Agents"
