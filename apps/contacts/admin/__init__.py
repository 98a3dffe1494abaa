"""How agents and people reach each other, in the operator's console."""

from apps.contacts.admin.channels import ChannelAdmin
from apps.contacts.admin.chats import ChatMessageAdmin, ChatSessionAdmin
from apps.contacts.admin.messages import OutboxMessageAdmin

__all__ = ["ChannelAdmin", "ChatMessageAdmin", "ChatSessionAdmin", "OutboxMessageAdmin"]
