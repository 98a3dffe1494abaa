"""The configuration of the app `contacts`."""

from django.apps import AppConfig


class ContactsConfig(AppConfig):
    """Holds the models of contacts."""

    name = "apps.contacts"
    verbose_name = "Contacts"
