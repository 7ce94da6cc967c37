"""Julia's dashboard pages, and the actions on them. Every action calls the same service as the corresponding command.

These modules import no web framework, because every process loads them.
"""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from app.composition.julia import Julia
from app.web.screens import agendamentos, campanhas, chips, conversas, duvidas, revisao, telegram, vagas
from batuta.extension import Action, Screen

TEMPLATES: Final = Path(__file__).parents[1] / "templates"


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    """Return the pages in navigation order. ``julia`` returns the services when a page is requested."""
    return [
        revisao.screen(julia),
        *duvidas.screens(julia),  # first, because the address pattern of one conversation's page would match too
        *conversas.screens(julia),
        *campanhas.screens(julia),
        *vagas.screens(julia),
        *agendamentos.screens(julia),
        *chips.screens(julia),
        *telegram.screens(julia),
    ]


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    parts = (revisao, duvidas, conversas, campanhas, vagas, agendamentos, chips, telegram)
    return [action for part in parts for action in part.actions(julia)]
