"""The command line, history, the audit log, metrics and logs."""

from __future__ import annotations

from datetime import timedelta

from arbor.audit.targets import check_heads_targets
from arbor.errors import ConfigurationInvalid
from arbor.history import Record, parse_ages
from config.environment import env, secret
from config.logs import logging_config
from config.settings.agents import ARBOR_WEBHOOK_ALLOW_HTTP

# --- Command line ---------------------------------------------------------------------------------------

#: The tenant of commands without `--tenant`; empty: the only one, or the one in which a row is found.
ARBOR_TENANT = env.str("ARBOR_TENANT", default="").strip()

# --- History --------------------------------------------------------------------------------------------

#: The age at which heartbeats, calls, conversations, messages, approvals, plans, progress, ledger, usage, audit,
#: signals, workflow runs and deliveries are deleted; None: never.
ARBOR_HISTORY_AGES = parse_ages(
    {
        Record.HEARTBEATS: env.str("ARBOR_HEARTBEATS_DAYS", default="90"),
        Record.CALLS: env.str("ARBOR_CALLS_DAYS", default="30"),
        Record.CONVERSATIONS: env.str("ARBOR_CONVERSATIONS_DAYS", default="365"),
        Record.MESSAGES: env.str("ARBOR_MESSAGES_DAYS", default="365"),
        Record.APPROVALS: env.str("ARBOR_APPROVALS_DAYS", default="365"),
        Record.PLANS: env.str("ARBOR_PLANS_DAYS", default="365"),
        Record.PROGRESS: env.str("ARBOR_PROGRESS_DAYS", default="365"),
        # A year and a month: the same month of last year can be compared.
        Record.LEDGER: env.str("ARBOR_LEDGER_DAYS", default="400"),
        Record.USAGE: env.str("ARBOR_USAGE_DAYS", default="800"),
        Record.AUDIT: env.str("ARBOR_AUDIT_DAYS", default="800"),
        Record.SIGNALS: env.str("ARBOR_SIGNALS_DAYS", default="30"),
        Record.WORKFLOWS: env.str("ARBOR_WORKFLOWS_DAYS", default="365"),
        Record.DELIVERIES: env.str("ARBOR_DELIVERIES_DAYS", default="30"),
    }
)

# --- Audit log ------------------------------------------------------------------------------------------

#: The period in which committed audit records and ended heartbeats are sealed into the chains of tenants and of the installation.
ARBOR_AUDIT_SEAL_PERIOD = timedelta(seconds=env.float("ARBOR_AUDIT_SEAL_PERIOD_S", default=30.0))
if not timedelta(seconds=1) <= ARBOR_AUDIT_SEAL_PERIOD <= timedelta(days=1):
    raise ConfigurationInvalid(
        f"ARBOR_AUDIT_SEAL_PERIOD_S must be 1 to 86400, got {ARBOR_AUDIT_SEAL_PERIOD.total_seconds():g}"
    )
#: The targets of the heads of the chains, besides the database: a file that gets lines of JSON, a URL that gets requests.
ARBOR_AUDIT_HEADS_FILE = env.str("ARBOR_AUDIT_HEADS_FILE", default="")
ARBOR_AUDIT_HEADS_URL = env.str("ARBOR_AUDIT_HEADS_URL", default="")
check_heads_targets(
    file=ARBOR_AUDIT_HEADS_FILE, url=ARBOR_AUDIT_HEADS_URL, allow_http=ARBOR_WEBHOOK_ALLOW_HTTP
)

# --- Metrics and spans ----------------------------------------------------------------------------------

#: The bearer token for `/metrics`; empty: only operators of the installation see that page.
ARBOR_METRICS_TOKEN = secret("ARBOR_METRICS_TOKEN")
#: Whether spans of heartbeats are exported: OpenTelemetry's own variables name the collector.
ARBOR_EXPORT_SPANS = bool(
    env.str("OTEL_EXPORTER_OTLP_ENDPOINT", default="")
    or env.str("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", default="")
)
#: Headers of the requests to the collector, NAME=VALUE separated by commas; they may contain its key.
OTEL_EXPORTER_OTLP_HEADERS = secret("OTEL_EXPORTER_OTLP_HEADERS")

# --- Logging --------------------------------------------------------------------------------------------

#: The least level of logged events: DEBUG, INFO, WARNING, ERROR or CRITICAL.
ARBOR_LOG_LEVEL = env.str("ARBOR_LOG_LEVEL", default="INFO").upper()
#: `console` (colored, for people) or `json` (one object per line, for machines).
ARBOR_LOG_FORMAT = env.str("ARBOR_LOG_FORMAT", default="console")
LOGGING = logging_config(level=ARBOR_LOG_LEVEL, form=ARBOR_LOG_FORMAT)
