"""Signals as rows: one for consecutive signals of one agent, or of the tenant as a whole, in one transaction."""

from __future__ import annotations

from typing import ClassVar

from django.db import models

from apps.tenants.fields import PackedList
from apps.tenants.models import Tenant, TenantModel
from arbor.history import Record
from arbor.quotations import counted


class SignalBatch(TenantModel):
    """Consecutive signals of one agent, or of what the tenant's agents share, that one transaction committed, in order; written once, deleted only by age.

    One transaction may write several rows for one agent: a run of signals ends at those of another agent or heartbeat, and at each write.

    The id is the position: the number of the transaction, then the time in the process that wrote the row. The database makes
    the id (`signals_row_id`), and readers stay below `signals_horizon`: see decision 0021.
    """

    app_privileges: ClassVar[str] = "SELECT, INSERT"
    ops_privileges: ClassVar[str] = "SELECT, INSERT, DELETE"
    deleted_after: ClassVar[Record] = Record.SIGNALS

    id = models.UUIDField(primary_key=True, editable=False)
    # Without a constraint: the check would lock the tenant's row, which all transactions of the tenant share.
    tenant = models.ForeignKey(
        Tenant,
        on_delete=models.CASCADE,
        db_constraint=False,
        db_index=False,
        related_name="+",
        editable=False,
    )
    #: No reference, because signals outlive their agent. Empty: the signals are about what the agents share, such as documents.
    agent_id = models.UUIDField(null=True)
    heartbeat_id = models.UUIDField(null=True)
    at = models.DateTimeField()
    #: [name, data] of each signal (`arbor.signals`).
    signals = PackedList(default=list)

    class Meta(TenantModel.Meta):
        verbose_name = "batch of signals"
        verbose_name_plural = "batches of signals"
        indexes = [models.Index(fields=["tenant", "agent_id", "id"], name="signals_batch_by_agent")]

    def __str__(self) -> str:
        return f"{counted(len(self.signals), 'signal')} of {self.agent_id or 'the tenant'}"
