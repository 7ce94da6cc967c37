"""The switches that hold back messages. The job catalogue, which every command loads, imports this module. Therefore
this module does not import the sending rules.
"""

from typing import Final

from batuta.guards import SwitchRule

CAMPAIGNS: Final = SwitchRule(key="campaigns.enabled", hold_when=False, default=True)
SAFE_MODE: Final = SwitchRule(key="safe_mode", hold_when=True, default=False)
