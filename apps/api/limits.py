"""Daily limits as fields of requests: within the range and with the decimals that their columns store."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated

from pydantic import Field

from apps.fleet.daily_limits import LIMITS

DailyHeartbeats = Annotated[int, Field(ge=0, le=LIMITS["daily_heartbeats"].largest)]
DailyTokens = Annotated[int, Field(ge=0, le=LIMITS["daily_tokens"].largest)]
DailyDollars = Annotated[
    Decimal, Field(ge=0, le=LIMITS["daily_usd"].largest, decimal_places=LIMITS["daily_usd"].decimals)
]
