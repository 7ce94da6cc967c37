"""Print how well the reader of group messages reads each author's messages, and which vacancies would be imported:
``python -m tests.julia.leitura_grupos.medir``. The messages of an author are read by models that were fitted without
this author.

``--documento`` also writes the tables, the reliability diagram and the ten worst messages to ``docs/``.
"""

import sys
from collections.abc import Sequence
from pathlib import Path

from app.contexts.leitura_grupos.documento import documento
from app.contexts.vagas.limiares import Limiares
from tests.julia.leitura_grupos.calibrar import confiabilidade, faixas, importadas, lidas, piores
from tests.julia.leitura_grupos.placar import CAMPOS, Documento, Placar, autores, mensagens, por_chave, tabela

DOCS = Path(__file__).parents[3] / "docs"
DIAGRAMA = DOCS / "pictures" / "leitura.svg"
BEGIN, END = "<!-- medidas -->\n", "<!-- fim das medidas -->\n"
_HEAD = ("author", "messages", "eh_oferta F1", "categoria", "vagas", "vaga F1", "false", "missed", *CAMPOS)


def main(arguments: Sequence[str]) -> None:
    limit = Limiares().leitura
    scores = tabela([_HEAD, *(_linha(name, [name]) for name in autores()), _linha("all", autores())])
    imported = (
        f"Imported vacancies, with a confidence of at least {limit}, each author left out:\n\n{importadas(limit)}"
    )
    sure = f"Share of correct vacancies by confidence, each author left out in turn:\n\n{confiabilidade()}"
    print(f"{scores}\n\n{imported}\n\n{sure}\n\n{_piores(limit)}")
    if "--documento" in arguments:
        DIAGRAMA.write_text(diagrama(), encoding="utf-8")
        picture = f"![Share of correct vacancies by confidence](pictures/{DIAGRAMA.name})"
        parts = ("## Scores", scores, "## Imported vacancies", imported, picture, sure, "## The ten worst messages")
        _gravar("\n\n".join((*parts, _piores(limit))) + "\n")


def _linha(name: str, of: Sequence[str]) -> list[str]:
    total = Placar()
    for autor in of:
        for expected, (read, _) in zip(mensagens(autor), lidas(autor), strict=True):
            total.somar(expected, documento(read))
    counts = total.vagas
    scores = [f"{total.oferta:.3f}", f"{total.categoria:.3f}", str(counts["tp"] + counts["fn"]), f"{total.vaga:.3f}"]
    fields = (f"{total.campo(each):.3f}" for each in CAMPOS)
    return [name, str(total.mensagens), *scores, str(counts["fp"]), str(counts["fn"]), *fields]


def _piores(limit: float) -> str:
    """Return the worst messages with their text, and with their vacancies as labelled and as read."""
    worst = piores(limit)
    found: dict[str, str] = {}
    for autor in autores():
        for message, (read, _) in zip(mensagens(autor), lidas(autor), strict=True):
            if message["id"] in worst:
                found[message["id"]] = _comparada(message, documento(read))
    return "\n\n".join(found[name] for name in worst)


def _comparada(message: Documento, read: Documento) -> str:
    expected, said = por_chave(message), por_chave(read, apelidos=True)
    wrong = [key for key in said if key not in expected or expected[key]["valor"] != said[key]["valor"]]
    missed = [key for key in expected if key not in said or expected[key]["valor"] != said[key]["valor"]]
    lines = [message["id"], *message["texto"].split("\n")]
    lines += [f"  wrong:  {_vaga(key, said[key])}" for key in wrong[:3]]
    lines += [f"  missed: {_vaga(key, expected[key])}" for key in missed[:3]]
    return "```text\n" + "\n".join(line.rstrip() for line in lines) + "\n```"


def _vaga(key: tuple[object, ...], vaga: Documento) -> str:
    return " | ".join(str(each) for each in (*key, vaga["valor"]))


def diagrama() -> str:
    """Draw an SVG diagram of the share of correct vacancies against the mean confidence of each range."""
    side, edge = 360, 45
    points = [(edge + mean * side, edge + (1 - right) * side, count) for _, _, count, mean, right in faixas()]
    marks = "\n".join(
        f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{3 + count**0.5 / 5:.1f}" fill="#1f6feb" fill-opacity="0.6"/>'
        for x, y, count in points
    )
    path = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in points)
    ticks = "\n".join(
        f'<text x="{edge + step * side / 5:.0f}" y="{edge + side + 18}" text-anchor="middle">{step / 5:.1f}</text>'
        f'<text x="{edge - 8}" y="{edge + side - step * side / 5 + 4:.0f}" text-anchor="end">{step / 5:.1f}</text>'
        for step in range(6)
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {side + 2 * edge} {side + 2 * edge}" '
        'font-family="sans-serif" font-size="12" role="img">\n'
        "<title>Share of correct vacancies by confidence</title>\n"
        f'<rect x="{edge}" y="{edge}" width="{side}" height="{side}" fill="none" stroke="#888"/>\n'
        f'<line x1="{edge}" y1="{edge + side}" x2="{edge + side}" y2="{edge}" stroke="#888" stroke-dasharray="4"/>\n'
        f'<polyline points="{path}" fill="none" stroke="#1f6feb"/>\n{marks}\n{ticks}\n'
        f'<text x="{edge + side / 2}" y="{edge + side + 36}" text-anchor="middle">confidence</text>\n'
        f'<text x="14" y="{edge + side / 2}" text-anchor="middle" transform="rotate(-90 14 {edge + side / 2})">correct</text>\n'
        "</svg>\n"
    )


def _gravar(measured: str) -> None:
    """Replace the section of docs/leitura.md that contains the measurements."""
    file = DOCS / "leitura.md"
    before, _, rest = file.read_text(encoding="utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    file.write_text(f"{before}{BEGIN}\n{measured}\n{END}{after}", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
