"""The switches that hold back messages. The catalogue of jobs imports this module too. Therefore this module imports no
rule of sending.
"""

from typing import Final

from batuta.guards import SwitchRule

CAMPAIGNS: Final = SwitchRule(key="campaigns.enabled", hold_when=False, default=True)
SAFE_MODE: Final = SwitchRule(key="safe_mode", hold_when=True, default=False)
