"""The configuration of the app `knowledge`."""

from django.apps import AppConfig


class KnowledgeConfig(AppConfig):
    """The app of documents and skills."""

    name = "apps.knowledge"
    verbose_name = "Knowledge"
