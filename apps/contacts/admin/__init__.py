"""What agents send, and by which ways, in the operator's console."""

from apps.contacts.admin.channels import ChannelAdmin
from apps.contacts.admin.messages import OutboxMessageAdmin

__all__ = ["ChannelAdmin", "OutboxMessageAdmin"]
