"""Generate tagged addresses in many layouts, to train the tagger of ``app/contexts/agendamentos/endereco``.

An address is a list of pieces, each of which is a text with its label or a separator without one. Names are common
Brazilian names and invented words, so that the tagger learns from the structure of an address and not from its names.
``gerador.toml`` contains the words.
"""

import random
import tomllib
import unicodedata
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any, Final

from app.contexts.agendamentos.endereco import geografia
from app.contexts.agendamentos.endereco.geografia import ESTADOS

_VOCABULARIO: Final[dict[str, Any]] = tomllib.loads(Path(__file__).with_suffix(".toml").read_text(encoding="utf-8"))
Peca = tuple[str, str]  # a text and its label; separators have the label ""

PRIMEIROS: Final[list[str]] = _VOCABULARIO["primeiros"]
SOBRENOMES: Final[list[str]] = _VOCABULARIO["sobrenomes"]
TITULOS: Final[list[str]] = _VOCABULARIO["titulos"]
SANTOS: Final[list[str]] = _VOCABULARIO["santos"]
COISAS: Final[list[str]] = _VOCABULARIO["coisas"]
RUAS: Final[list[str]] = _VOCABULARIO["ruas"]
BAIRROS: Final[list[str]] = _VOCABULARIO["bairros"]
RURAIS: Final[list[str]] = _VOCABULARIO["rurais"]
REFERENCIAS: Final[list[str]] = _VOCABULARIO["referencias"]
PONTOS: Final[list[str]] = _VOCABULARIO["pontos"]
NOTAS: Final[list[str]] = _VOCABULARIO["notas"]
PREDIOS: Final[list[str]] = _VOCABULARIO["predios"]
_SILABAS: Final[list[str]] = _VOCABULARIO["silabas"]
PREFIXOS: Final[list[tuple[int, list[str]]]] = _VOCABULARIO["prefixos"]
TIPOS: Final[list[tuple[int, list[str]]]] = _VOCABULARIO["tipos"]
ITENS: Final[list[tuple[str, list[str]]]] = _VOCABULARIO["itens"]
COMBINACOES: Final[list[list[int]]] = _VOCABULARIO["combinacoes"]
ORDENS: Final[list[tuple[str, int]]] = _VOCABULARIO["ordens"]
APELIDOS: Final[dict[str, list[str]]] = _VOCABULARIO["apelidos"]
ROTULOS: Final[dict[str, list[str]]] = _VOCABULARIO["rotulos"]


@cache
def _cidades() -> tuple[tuple[str, str], ...]:
    contexts = Path(geografia.__file__).parents[2]
    lines = (contexts / "comum" / "municipios.txt").read_text(encoding="utf-8").splitlines()
    return tuple((nome, uf) for uf, *names in (line.split("\t") for line in lines) for nome in names)


@cache
def _maiores() -> tuple[tuple[str, str], ...]:
    return tuple(sorted((each.nome, each.uf) for each in geografia._atlas().larger))


def _weighted(r: random.Random, table: list[tuple[int, list[str]]]) -> list[str]:
    return r.choices([forms for _, forms in table], [weight for weight, _ in table])[0]


def _word(r: random.Random) -> str:
    return "".join(r.choice(_SILABAS) for _ in range(r.choice((2, 2, 3, 3, 4)))).capitalize()


def _person(r: random.Random) -> str:
    parts = [r.choice(PRIMEIROS), r.choice(SOBRENOMES) if r.random() < 0.75 else _word(r)]
    if r.random() < 0.35:
        parts.append(r.choice((*SOBRENOMES, "Filho", "Neto", "Júnior")))
    if r.random() < 0.2:
        parts.insert(1, r.choice(("da", "de", "dos")))
    if r.random() < 0.4:
        parts.insert(0, r.choice(TITULOS))
    if r.random() < 0.08:
        parts = [*parts[:1], "e", *parts[-1:]]
    return " ".join(parts)


def _code(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.45:
        return str(r.randint(1, 120))
    if kind < 0.55:
        return f"{r.randint(1, 2)}.{r.randint(0, 999):03d}"
    if kind < 0.75:
        return r.choice("ABCDEFGHIJLMNPRSTUVX")
    if kind < 0.85:
        return f"{r.choice(('T', 'C', 'R', 'F', 'P'))}-{r.randint(1, 99)}"
    if kind < 0.87:
        return f"{r.randint(1, 30)}{r.choice('ABCDEF')}"
    if kind < 0.9:
        return f"{r.choice(('WE', 'SN', 'JK'))}{r.choice('- ')}{r.randint(1, 99)}"
    return f"{r.randint(1, 30)}-{r.choice('ABCDEF')}"


def _street_name(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.36:
        return _person(r)
    if kind < 0.58:
        return r.choice(RUAS)
    if kind < 0.66:
        return r.choice(SANTOS)
    if kind < 0.73:
        return r.choice(("das ", "dos ")) + r.choice(COISAS)
    if kind < 0.83:
        return r.choice(("", "", "Projetada ")) + _code(r)
    if kind < 0.88:
        return r.choice(("do ", "da ", "de ")) + _word(r)
    if kind < 0.92:
        return r.choice(_cidades())[0]
    if kind < 0.96:
        return r.choice(BAIRROS)
    return _word(r) + (f" {_word(r)}" if r.random() < 0.4 else "")


def logradouro(r: random.Random, *, is_numbered: bool, is_brasilia: bool) -> str:
    kind = r.random()
    if kind < 0.05 and not is_brasilia:
        well_known = ("Boa Vista", "Boa Esperança", "Água Limpa", "Santa Fé", "Bom Jardim")
        names = [_street_name(r), r.choice(SANTOS), _word(r), r.choice(well_known), f"do {_word(r)}"]
        return f"{r.choice(RURAIS)} {r.choice(names)}"
    if kind < 0.085 and not is_brasilia:
        uf = r.choice((*ESTADOS, "BR", "BR", "BR", "BR", "BR"))
        return (
            r.choice(("Rodovia ", "Rod. ", "Rod ", "", "", "Estrada "))
            + f"{uf}{r.choice('- ')}{r.randint(10, 499):03d}"
        )
    if is_brasilia or kind < 0.09:
        code = r.choice(_VOCABULARIO["brasilia"])
        return f"{code.replace('_', ' ')} {r.randint(1, 716)}" + (f"/{r.randint(2, 40)}" if r.random() < 0.08 else "")
    if kind < 0.1:
        return f"{r.randint(1, 9)}ª {r.choice(('Avenida', 'Av.', 'Travessa', 'Rua'))}"
    if kind < 0.115:
        kinds = ("Rio", "Igarapé", "Ilha", "Vila", "Folha", "Núcleo Rural", "Praia")
        first = r.choice(kinds)
        return f"{first} {r.choice([_word(r), r.choice(SANTOS), str(r.randint(1, 33))])}"
    shorts = _weighted(r, TIPOS)
    name = _street_name(r)
    if shorts[0] in ("Estrada", "Rodovia") and r.random() < 0.4:
        name = r.choice(("Geral ", "Velha de ", "do ", "da ", "Municipal ", "Vicinal ")) + _word(r)
    if is_numbered and r.random() < 0.15 and not name[0].isdigit() and len(name) > 3:
        return name if not name.startswith(("d", "D")) or " " not in name else name.split(" ", 1)[1]
    return f"{r.choice(shorts)} {name}"


def bairro(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.42:
        return r.choice(BAIRROS)
    if kind < 0.8:
        shorts = _weighted(r, PREFIXOS)
        name = r.choice(
            [
                _word(r),
                r.choice(SANTOS),
                r.choice(BAIRROS),
                r.choice(SOBRENOMES),
                r.choice(PRIMEIROS),
                r.choice(COISAS),
                f"das {r.choice(COISAS)}",
                r.choice(_cidades())[0],
            ]
        )
        name = f"{r.choice(shorts)} {name}"
    elif kind < 0.84:
        name = r.choice(SANTOS)
    elif kind < 0.88:
        head = r.choice(_VOCABULARIO["lugares"])
        joined = r.choice(("do ", "da ", "dos ", "de ", "", "", ""))
        ends = [_word(r), r.choice(PRIMEIROS), r.choice(COISAS), r.choice(_VOCABULARIO["qualidades"])]
        name = f"{head} {joined}{r.choice(ends)}"
    elif kind < 0.94:
        name = r.choice(r.choice((_cidades(), _maiores())))[0]
    else:
        name = _word(r) + (f" {_word(r)}" if r.random() < 0.25 else "")
    return name + (
        f" {r.choice(('I', 'II', 'III', 'IV', '2', '1', 'Norte', 'Sul', 'Velha', 'VII'))}" if r.random() < 0.1 else ""
    )


def numero(r: random.Random) -> tuple[Peca, ...]:
    digits = str(
        r.choice((r.randint(1, 99), r.randint(1, 999), r.randint(1, 3999), r.randint(100, 999), r.randint(1000, 9999)))
    )
    kind = r.random()
    if kind < 0.12 and len(digits) == 4:
        digits = f"{digits[0]}.{digits[1:]}"
    elif kind < 0.2:
        digits += r.choice(("-A", "A", " A", "-B", "B", " B", "-C", "a", "b", "-a", " F", " C"))
    elif kind < 0.27:
        return (
            (
                r.choice(
                    ("s/n", "S/N", "sn", "SN", "s/nº", "s/n°", "S/Nº", "sem número", "s. n.", "s/ n", "S/n", "s/no")
                ),
                "N",
            ),
        )
    elif kind < 0.31:
        return (
            (f"{r.choice(('km ', 'KM ', 'Km ', 'km', 'KM'))}{r.randint(1, 120)}{r.choice(('', '', '', ',5'))}", "N"),
        )
    elif kind < 0.35:
        return (
            (digits.replace(".", ""), "N"),
            (r.choice(("/", "/", " / ")), ""),
            (str(r.choice((r.randint(1, 30), r.randint(11, 1504)))), "C"),
        )
    mark = r.random()
    if mark < 0.22:
        return (
            (
                r.choice(("nº", "n°", "n", "N", "nº.", "n.", "N.", "No", "no.", "número", "num", "Nº", "nr", "num.")),
                "X",
            ),
            (" ", ""),
            (digits, "N"),
        )
    if mark < 0.25:
        return ((r.choice(("nº", "n°", "N°", "n.", "Nº")), "X"), ("", ""), (digits, "N"))
    return ((digits, "N"),)


def _item(r: random.Random, which: int) -> str:
    kinds, words = ITENS[which]
    word = r.choice(words)
    if word in ("rua", "setor") and r.random() < 0.8:
        word = "bloco"
    if not kinds:
        return word
    kind = r.choice(kinds)
    if kind == "o":
        return r.choice(
            (
                f"{r.randint(1, 20)}º andar",
                f"{r.randint(1, 20)}° andar",
                f"{r.randint(1, 12)} andar",
                f"{r.randint(1, 20)}º And.",
                f"{r.randint(1, 15)}º and",
            )
        )
    if kind == "m":
        return f"{word} {r.choice((r.choice(PREDIOS), r.choice(PREDIOS), _word(r), _person(r), r.choice(SANTOS)))}"
    if kind == "l":
        value = r.choice("ABCDEFGH")
    else:
        value = str(r.choice((r.randint(1, 30), r.randint(1, 30), r.randint(1, 204), r.randint(11, 1504))))
        if r.random() < 0.08:
            value += r.choice(("A", "-B", "B", "-A", "C"))
    glue = "" if r.random() < 0.07 or word.endswith("/") else " "
    mark = r.choice(("", "", "", "", "", "nº ")) if kind == "n" and r.random() < 0.1 else ""
    return f"{word}{glue}{mark}{value}"


def complemento(r: random.Random, sep: str, *, has_bairro: bool, combination: Sequence[int]) -> list[Peca]:
    found: list[Peca] = []
    if not has_bairro and set(combination) & {15, 17}:
        combination = [0]
    joined = r.choice((" ", " ", ", ", sep, sep, " / ", "/", " - ", " e "))
    for place, which in enumerate(combination):
        if place:
            found.append((joined, "C" if joined.strip() in ("", "e") else ""))
        found.append((_item(r, which), "C"))
    return found


def cidade_uf(r: random.Random) -> tuple[str, str]:
    nome, uf = r.choice(_maiores()) if r.random() < 0.5 else r.choice(_cidades())
    if nome in APELIDOS and r.random() < 0.4:
        nome = r.choice(APELIDOS[nome])
        if len(nome) == 2 and nome in ESTADOS:
            nome = nome.replace("SP", "Sampa").replace("RJ", "Rio")
    elif r.random() < 0.1 and " " in nome:
        first, _, rest = nome.partition(" ")
        short = {
            "São": ("S.", "S"),
            "Santo": ("Sto.", "Sto", "S."),
            "Santa": ("Sta.", "Sta", "S."),
            "Nova": ("N.",),
            "Presidente": ("Pres.", "Pte."),
            "Governador": ("Gov.",),
        }
        nome = f"{r.choice(short[first])} {rest}" if first in short else nome
    return nome, uf


def referencia(r: random.Random) -> str:
    kind = r.random()
    if kind < 0.6:
        return f"{r.choice(REFERENCIAS)} {r.choice(PONTOS)}" + (
            f" {r.choice((_word(r), r.choice(SANTOS), r.choice(PRIMEIROS), 'da vila'))}" if r.random() < 0.4 else ""
        )
    return r.choice(NOTAS)


def cep(r: random.Random) -> str:
    digits = f"{r.randint(1000000, 99999999):08d}"
    number = r.choice(
        (f"{digits[:5]}-{digits[5:]}", f"{digits[:5]}-{digits[5:]}", digits, f"{digits[:2]}.{digits[2:5]}-{digits[5:]}")
    )
    return r.choice(("", "", "", "CEP ", "CEP: ", "cep ", "Cep: ", "CEP:")) + number


def gerar(r: random.Random) -> list[Peca]:
    """Return the pieces of one generated address."""
    order = r.choices([each for each, _ in ORDENS], [weight for _, weight in ORDENS])[0]
    if r.random() < 0.2:
        order = "".join(each for each in order if each not in r.sample("NCBMUP", 2))
    chance = {"L": 0.98, "N": 0.93, "C": 0.5, "B": 0.88, "M": 0.93, "U": 0.78, "P": 0.4}
    fields = [each for each in order if r.random() < chance[each]] or ["L"]
    combination = r.choice(COMBINACOES)
    is_brasilia = r.random() < 0.05
    if is_brasilia:
        combination = r.choice(
            [[1, 0], [1, 0], [9, 2], [9, 2], [9, 7], [7], [2], [7, 0], [1, 5], [1, 8], [9, 2, 0], [6, 9, 2]]
        )
        fields = [each for each in fields if each != "N"]
        fields = (
            fields
            if "C" in fields or "L" not in fields
            else [*fields[: fields.index("L") + 1], "C", *fields[fields.index("L") + 1 :]]
        )
    if 7 in combination and "C" in fields and "N" in fields and r.random() < 0.5:
        fields.remove("N")
    style = r.random()
    if style < 0.27:
        sep = r.choice((", ", ", ", ", ", ","))
    elif style < 0.45:
        sep = r.choice((" - ", " - ", " – ", "- "))
    elif style < 0.52:
        sep = r.choice((";", "; "))
    elif style < 0.57:
        sep = r.choice((" | ", "|"))
    elif style < 0.63:
        sep = r.choice(("/", " / "))
    elif style < 0.68:
        sep = "\n"
    elif style < 0.72:
        sep = ". "
    elif style < 0.89:
        sep = " "
    else:
        sep = ""  # the separators are mixed
    labels = r.random()
    labelled = (
        set(fields)
        if labels < 0.07
        else set(fields) - {"N", "C"}
        if labels < 0.12
        else {each for each in fields if r.random() < 0.5}
        if labels < 0.16
        else {"B"}
        if labels < 0.19
        else set()
    )
    mark = r.choice((": ", ": ", ": ", ":", "=", " - ", " ", ": "))
    town, uf = (
        cidade_uf(r) if not is_brasilia or r.random() < 0.15 else (r.choice(("Brasília", "Brasilia", "BSB")), "DF")
    )
    state = (
        ESTADOS[uf]
        if r.random() < 0.2
        else "Minas"
        if uf == "MG" and r.random() < 0.1
        else r.choice((uf, uf, uf, uf, uf.lower(), f"{uf[0]}.{uf[1]}."))
    )
    if state == ESTADOS[uf] and r.random() < 0.1:
        state = f"Estado de {state}"
    pieces: list[Peca] = []
    splits_type = sep in (";", "|", " | ", "; ") and r.random() < 0.35
    cells = sep in (";", "|") and r.random() < 0.5  # an exported table, in which a missing field leaves an empty cell
    weak_number = r.random() < 0.45
    where_ref = r.random()
    fields_with_ref = list(fields)
    if where_ref < 0.13:
        fields_with_ref.insert(
            r.choice((len(fields), len(fields), max(1, len(fields) - 1), min(3, len(fields)), min(2, len(fields)))), "R"
        )
    previous = ""
    walked = (
        [each for each in order if each in fields_with_ref or cells] if "R" not in fields_with_ref else fields_with_ref
    )
    for each in walked:
        if previous:
            pieces.append((_between(r, previous, each, sep, weak_number=weak_number, is_labelled=each in labelled), ""))
        previous = each
        if each not in fields_with_ref:
            continue
        if each in labelled or (each == "R" and labelled and r.random() < 0.7):
            if each == "L" and splits_type:
                pieces += [(r.choice(("Tipo", "TP", "Tp.")), "X"), (mark, "")]
            else:
                pieces += [(r.choice(ROTULOS[each]), "X"), (mark if mark.strip() or each == "B" else ": ", "")]
        pieces += _field(
            r,
            each,
            sep,
            town,
            state,
            splits_type=splits_type,
            is_labelled=each in labelled,
            mark=mark,
            has_bairro="B" in fields,
            is_numbered="LN" in "".join(fields) or "NL" in "".join(fields),
            is_brasilia=is_brasilia,
            combination=combination,
        )
    if r.random() < 0.03:
        pieces = [
            (
                r.choice(
                    ("reside na", "mora na", "Residente à", "res.:", "Paciente mora em", "endereço novo:", "atual:")
                ),
                "X",
            ),
            (" ", ""),
            *pieces,
        ]
    if r.random() < 0.02:
        pieces += [(r.choice((", ", " - ", " ")), ""), (r.choice(("Brasil", "BRASIL", "Br")), "X")]
    return _cased(r, pieces) if pieces else gerar(r)


def _field(
    r: random.Random,
    each: str,
    sep: str,
    town: str,
    state: str,
    *,
    splits_type: bool,
    is_labelled: bool,
    mark: str,
    has_bairro: bool,
    is_numbered: bool,
    is_brasilia: bool,
    combination: Sequence[int],
) -> list[Peca]:
    if each == "L":
        said = logradouro(r, is_numbered=is_numbered, is_brasilia=is_brasilia)
        head, space, tail = said.partition(" ")
        if (
            splits_type
            and space
            and head.lower().strip(".")
            in ("rua", "r", "av", "avenida", "tv", "trav", "travessa", "al", "estr", "rod", "pça")
        ):
            between: list[Peca] = [(" ", ""), ("Nome", "X"), (mark, "")] if is_labelled else [(sep, "")]
            return [(head, "L"), *between, (tail, "L")]
        return [(said, "L")]
    if each == "N":
        found = numero(r)
        return [found[-1]] if is_labelled and found[0][1] == "X" else list(found)
    if each == "C":
        return complemento(
            r, sep if sep.strip() in (",", "-", "/") else " ", has_bairro=has_bairro, combination=combination
        )
    if each == "B":
        marked = r.random()
        if is_brasilia and marked < 0.5:
            return [(r.choice(_VOCABULARIO["regioes"]), "B")]
        if marked > 0.97:
            return [
                (r.choice(("distrito de", "Distrito de", "distrito", "localidade de")), "X"),
                (" ", ""),
                (r.choice((_word(r), r.choice(SANTOS), r.choice(BAIRROS))), "B"),
            ]
        if marked < 0.07 and not is_labelled:
            return [(r.choice(("bairro", "Bairro", "B.", "b.", "Bº", "bº")), "X"), (" ", ""), (bairro(r), "B")]
        return [(bairro(r), "B")]
    if each == "M":
        return [(town, "M")]
    if each == "U":
        return [(state, "U")]
    if each == "P":
        return [(cep(r), "X")]
    return [(referencia(r), "X")]


def _between(r: random.Random, a: str, b: str, sep: str, *, weak_number: bool, is_labelled: bool) -> str:
    if sep == "":
        sep = r.choice((", ", " - ", ", ", " ", "\n", " - ", "; ", " / "))
    if a == "M" and b == "U" and not is_labelled and r.random() < 0.75 and sep not in (";", "|"):
        return (
            r.choice(("/", "/", "-", " - ", " ", ", ", "/", " / ", " ("))
            if sep != " "
            else r.choice((" ", " ", "/", "-"))
        )
    if b == "N" and a == "L" and weak_number:
        return r.choice((" ", ", ", ","))
    if b == "C" and a == "N":
        return r.choice((sep, sep, " ", ", ", " ", " - ", "/", "/ "))
    if b == "P":
        return r.choice((sep, sep, " ", ", ", " - "))
    if b == "R":
        return r.choice((sep, sep, ", ", " (", " ", " - "))
    if r.random() < 0.06 and sep not in (";", "|"):
        return r.choice((" ", ", ", " - ", " "))
    return sep


def _cased(r: random.Random, pieces: list[Peca]) -> list[Peca]:
    kind = r.random()
    if kind < 0.3:
        pieces = [(text.upper(), label) for text, label in pieces]
    elif kind < 0.42:
        pieces = [(text.lower(), label) for text, label in pieces]
    if r.random() < 0.4:
        pieces = [(_without_accents(text), label) for text, label in pieces]
    if r.random() < 0.05:
        place = r.randrange(len(pieces))
        text, label = pieces[place]
        if len(text) > 6 and text.isalpha():
            at = r.randrange(2, len(text) - 1)
            pieces[place] = (text[:at] + text[at + 1 :], label)
    return pieces


def _without_accents(text: str) -> str:
    return "".join(each for each in unicodedata.normalize("NFD", text) if unicodedata.category(each) != "Mn")
