"""The switches that hold back messages. This module imports no sending rules, because the job catalogue
imports it too.
"""

from typing import Final

from batuta.guards import SwitchRule

CAMPAIGNS: Final = SwitchRule(key="campaigns.enabled", hold_when=False, default=True)
SAFE_MODE: Final = SwitchRule(key="safe_mode", hold_when=True, default=False)
