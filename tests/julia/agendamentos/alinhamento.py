"""Find the words that belong to each field of a labelled address, because authors label whole fields and not single
words.
"""

from collections.abc import Iterator, Mapping, Sequence

from app.contexts.agendamentos.endereco.endereco import preparar
from app.contexts.agendamentos.endereco.montagem import CAMPOS, campo, campos_de
from app.contexts.agendamentos.endereco.palavras import STRONG, Palavra, palavras
from tests.julia.agendamentos.medir import iguais

LONGEST = 14  # largest number of words of a field
Rotulo = Mapping[str, str | None]
Trecho = tuple[int, int]


def alinhar(texto: str, rotulo: Rotulo) -> tuple[list[Palavra], str] | None:
    """Return each word of a labelled address with its label. Return None if no choice of labels gives the labelled
    fields.
    """
    prepared = preparar(texto)
    lidas = palavras(prepared.texto) if prepared is not None else []
    if prepared is None or not lidas:
        return None
    labels = ["X"] * len(lidas)
    for name in ("logradouro", "uf", "cidade", "bairro", "complemento", "numero"):
        value = rotulo[name]
        if value is None:
            continue
        found = _choose(name, labels, list(_spans(name, prepared.texto, lidas, labels, value, rotulo["uf"])))
        spans = [found] if found else []
        if not spans and name == "complemento":
            spans = _items(prepared.texto, lidas, labels, value)
        if not spans:
            return None
        for start, end in spans:
            labels[start:end] = CAMPOS[name] * (end - start)
    for i in range(1, len(lidas) - 1):
        if labels[i - 1 : i + 2] == ["L"] * 3 and lidas[i + 1].antes == ":":
            labels[i] = "X"  # Tipo: AV Nome: BRASIL
    read = campos_de(prepared.texto, lidas, "".join(labels))
    return (lidas, "".join(labels)) if all(iguais(name, read[name], rotulo[name]) for name in CAMPOS) else None


def _spans(
    name: str, texto: str, lidas: Sequence[Palavra], labels: Sequence[str], value: str, uf: str | None
) -> Iterator[Trecho]:
    digits = "".join(filter(str.isdigit, value))
    for start in range(len(lidas)):
        for end in range(start + 1, min(len(lidas), start + LONGEST) + 1):
            is_over = name in ("bairro", "cidade") and end - 1 > start and lidas[end - 1].antes[0] in STRONG
            if labels[end - 1] != "X" or is_over:  # these fields end at a strong separator
                break
            if "".join(each for word in lidas[start:end] for each in word.plana if each.isdigit()) != digits:
                continue  # skip quickly before the words are read
            holes = [k for k in range(start + 1, end - 1) if lidas[k + 1].antes == ":"] if name == "logradouro" else []
            runs = [[(start, end)], *([(start, k), (k + 1, end)] for k in holes)]
            if any(iguais(name, campo(name, texto, lidas, run, uf), value) for run in runs):
                yield start, end


def _choose(name: str, labels: Sequence[str], spans: list[Trecho]) -> Trecho | None:
    """Return the most probable span: for a state, the one at the end; for a city or a number, the one next to the
    neighbouring field; for any other field, the shortest.
    """
    count = len(labels)
    if name == "uf":
        return min(spans, key=lambda each: -each[0] if each[0] > count // 2 else each[0] + count, default=None)
    if name == "cidade":
        state = labels.index("U") if "U" in labels else count
        return min(
            spans,
            key=lambda each: (abs(each[1] - state) if each[1] <= state else each[0] - state + 0.5, each[1] - each[0]),
            default=None,
        )
    if name == "numero":
        after = count - labels[::-1].index("L") if "L" in labels else 0
        return min(spans, key=lambda each: (each[0] < after, abs(each[0] - after), each[1] - each[0]), default=None)
    return min(spans, key=lambda each: (each[1] - each[0], each[0]), default=None)


def _items(texto: str, lidas: Sequence[Palavra], labels: list[str], value: str) -> list[Trecho]:
    """Return the spans of the items in an address complement. Words from other fields may occur between the items."""
    found: list[Trecho] = []
    taken = list(labels)
    for item in value.split(", "):
        span = _choose("complemento", taken, list(_spans("complemento", texto, lidas, taken, item, None)))
        if span is None:
            return []
        taken[slice(*span)] = "C" * (span[1] - span[0])
        found.append(span)
    return found
