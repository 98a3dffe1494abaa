"""Carry messages out of this installation: by email through Django, or by webhook."""

from __future__ import annotations

import re
import smtplib
from email.utils import formataddr

import structlog
from django.conf import settings
from django.core.mail import EmailMessage, mailers

from arbor.adapters.webhook import Webhook
from arbor.contacts.ports import Carrier, DeliverableMessage
from arbor.contacts.values import ChannelKind
from arbor.errors import DeliveryFailed

log = structlog.get_logger(__name__)

#: The most characters of a subject: mail programs truncate longer ones.
_SUBJECT_LENGTH = 150
_PERMANENT = 500
_MAILER = "default"
_NOT_CONFIGURED = (
    "no mail server is configured: set ARBOR_EMAIL_HOST and ARBOR_EMAIL_FROM, then retry the message"
    " (`arbor contact outbox retry`)"
)


class Mail:
    """Sends emails, each over a connection of its own, within the settings' time-out."""

    def deliver(self, message: DeliverableMessage) -> None:
        """Send the email. Its Message-ID is derived from the message's key, so it is the same at every attempt.

        Raises DeliveryFailed, which is final for a 5xx reply and for a missing server.
        """
        if _MAILER not in mailers:
            raise DeliveryFailed(_NOT_CONFIGURED, final=True)
        try:
            accepted = _mail(message).send(using=_MAILER)
        except smtplib.SMTPRecipientsRefused as error:
            code, _ = next(iter(error.recipients.values()), (0, b""))
            raise DeliveryFailed(
                f"the mail server refused the address with {code}", final=code >= _PERMANENT
            ) from error
        except smtplib.SMTPResponseException as error:
            # The server's own words name hosts of the operator's network; they are for the log.
            log.warning("mail_refused", code=error.smtp_code, answer=_line(error.smtp_error))
            reason = f"the mail server answered {error.smtp_code}"
            # Servers also answer 5xx to a wrong password, which a person must correct.
            raise DeliveryFailed(reason, final=error.smtp_code >= _PERMANENT) from error
        except (smtplib.SMTPException, OSError) as error:
            log.warning("mail_failed", error=str(error))
            raise DeliveryFailed(
                f"the mail server did not accept the message: {type(error).__name__}"
            ) from error
        if not accepted:
            raise DeliveryFailed("the mail server did not accept the message")


def _mail(message: DeliverableMessage) -> EmailMessage:
    sender = settings.ARBOR_EMAIL_FROM
    domain = sender.rpartition("@")[2]
    return EmailMessage(
        subject=_line(message.subject or message.content)[:_SUBJECT_LENGTH],
        body=message.content,
        from_email=formataddr((f"{message.agent} (Arbor)", sender)),
        to=[message.target],
        headers={
            "Message-ID": f"<{re.sub(r'[^0-9A-Za-z.-]', '.', message.key)}@{domain}>",
            "Idempotency-Key": message.key,
            # Suppresses automatic replies (RFC 3834, 5).
            "Auto-Submitted": "auto-generated",
        },
    )


def _line(text: str | bytes) -> str:
    if isinstance(text, bytes):
        text = text.decode(errors="replace")
    return " ".join(text.split())


def carrier_of(kind: ChannelKind) -> Carrier:
    """Return the carrier of a channel kind that leaves this installation: mail or webhook."""
    if kind is ChannelKind.EMAIL:
        return Mail()
    if kind is ChannelKind.WEBHOOK:
        return Webhook(
            allow_http=settings.ARBOR_WEBHOOK_ALLOW_HTTP, allow_private=settings.ARBOR_WEBHOOK_ALLOW_PRIVATE
        )
    raise ValueError(f"messages of the kind {kind} are not carried anywhere")
