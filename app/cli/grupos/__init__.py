"""``batuta grupos``: commands for the message pipeline, the operators' review, and the known names of hospitals and
specialities.
"""

from collections.abc import Callable

from app.cli.grupos import autores, avaliar, fechamentos, fila, ler, listas, nomes, revisao, rotulos

COMMANDS: dict[str, Callable[..., None]] = {
    "avaliar": avaliar.avaliar,
    **fila.COMMANDS,
    "carregar": nomes.carregar,
    **revisao.COMMANDS,
    **fechamentos.COMMANDS,
    **autores.COMMANDS,
    "nomes": nomes.nomes,
    "esquecer": nomes.esquecer,
    **listas.COMMANDS,
    "ler": ler.ler,
    "rotulos": rotulos.rotulos,
}
