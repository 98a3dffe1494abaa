"""The configuration of the app `workflows`."""

from django.apps import AppConfig


class WorkflowsConfig(AppConfig):
    """The app of workflows and their runs."""

    name = "apps.workflows"
    verbose_name = "Workflows"
