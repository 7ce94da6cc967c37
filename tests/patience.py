"""Generous time limits for connections whose limits are not being tested, so that a busy machine makes tests slower but
does not make them fail.
"""

from datetime import timedelta

from batuta.stores.sql.database import ConnectionLimits

_MINUTES = timedelta(minutes=5)
PATIENT = ConnectionLimits(connect=_MINUTES, statement=_MINUTES, lock=_MINUTES, idle_in_transaction=_MINUTES)
