"""Time limits for connections whose limits are not under test: a busy machine only makes them slower."""

from datetime import timedelta

from batuta.stores.sql.database import Limits

_MINUTES = timedelta(minutes=5)
PATIENT = Limits(connect=_MINUTES, statement=_MINUTES, lock=_MINUTES, idle_in_transaction=_MINUTES)
