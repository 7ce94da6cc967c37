"""Write the list of municipalities: ``python -m scripts.municipios CITIES_CODE.json IBGE.txt``.

``CITIES_CODE.json`` is ``data/cities_code.json`` of the package ``brutils``: every municipality with its code, without
accents. ``IBGE.txt`` is the table of the statistics office, with accents: state code, state, municipality code and
name, separated by tabs. Each line of the result has a state and its municipalities.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path

from app.contexts.agendamentos.texto import plano

TARGET = Path(__file__).parent.parent / "app" / "contexts" / "comum" / "municipios.txt"
EVERY = 5570


def main(arguments: Sequence[str]) -> int:
    codes = json.loads(Path(arguments[0]).read_text(encoding="utf-8"))
    table = [line.split("\t") for line in Path(arguments[1]).read_text(encoding="utf-8").splitlines() if line.strip()]
    named = {state + code: name.strip() for state, _, code, name, *_ in table}
    lines, count = [], 0
    for uf in sorted(codes):
        names = sorted(_accented(plain, named.get(code, "")) for plain, code in codes[uf].items())
        lines.append("\t".join([uf, *names]))
        count += len(names)
    if count != EVERY:
        print(f"{count} municipalities instead of {EVERY}: check {arguments[0]}", file=sys.stderr)
        return 1
    TARGET.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


# Municipalities that were renamed after the table was made.
_RENAMED = {
    plano(name): name
    for name in (
        "Eldorado do Carajás", "Santa Izabel do Pará", "Tabocão", "Itapajé", "Campo Grande", "Serra Caiada", "Iguaracy",
        "Amparo do São Francisco", "Muquém do São Francisco", "Santa Terezinha", "Dona Euzébia", "São Tomé das Letras",
        "Florínea", "Mogi Mirim", "São Luiz do Paraitinga", "Poxoréu", "Santo Antônio de Leverger",
    )
}  # fmt: skip


def _accented(plain: str, named: str) -> str:
    is_same = plano(named).replace("-", " ") == plano(plain).replace("-", " ")
    return named if is_same else _RENAMED[plain]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
