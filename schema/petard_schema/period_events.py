"""What Petard says to itself in the ledger: a rating period has ended."""

from datetime import date
from typing import Annotated, Final, Literal

from pydantic import Field

from petard_schema.envelope import Envelope, Message
from petard_schema.names import MAX_ID, OWN_SOURCE, PoolName

PERIOD_CLOSED: Final = "petard.period.closed.v1"
Day = Annotated[date, Field(strict=False, description="A day of UTC.")]


class ClosedPeriod(Message):
    """The running ratings of the period are final; the games that follow belong to a later one."""

    pool: PoolName
    days: Annotated[int, Field(ge=1, description="How many days the period lasted.")]
    first_day: Annotated[Day, Field(description="The first day of the period that ended.")]
    next_first_day: Annotated[Day, Field(description="The first day of the period that has begun.")]


class PeriodClosed(Envelope):
    """A rating period of a pool has ended: only in the ledger, and as a cause in the change stream."""

    id: Annotated[str, Field(min_length=1, max_length=MAX_ID)]
    source: Annotated[str, Field(pattern=f"^{OWN_SOURCE}$")] = OWN_SOURCE
    type: Literal["petard.period.closed.v1"] = "petard.period.closed.v1"
    data: ClosedPeriod
