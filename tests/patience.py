"""Generous time limits for connections whose limits are not under test, so that a busy machine only makes the test
slower.
"""

from datetime import timedelta

from batuta.stores.sql.database import Limits

_MINUTES = timedelta(minutes=5)
PATIENT = Limits(connect=_MINUTES, statement=_MINUTES, lock=_MINUTES, idle_in_transaction=_MINUTES)
