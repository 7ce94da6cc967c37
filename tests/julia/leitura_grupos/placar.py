"""Score the reader of group messages against labelled messages. The labelling rules are in ``autores/README.md``."""

import json
import re
import unicodedata
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import Any

from app.contexts.leitura_grupos.api import Vocabulario, ler
from app.contexts.leitura_grupos.documento import documento

AUTORES = Path(__file__).parent / "autores"
CAMPOS = ("valor", "hora_inicio", "hora_fim", "contato_nome", "contato_whatsapp", "forma_pagamento", "cidade", "uf")
Documento = Mapping[str, Any]


def autores() -> list[str]:
    order = {name: place for place, name in enumerate(("primeiro", "segundo"))}
    found = (each.parent.name for each in AUTORES.glob("*/grupos.jsonl"))
    return sorted(found, key=lambda name: (order.get(name, 9), name))


@cache
def mensagens(autor: str) -> tuple[Documento, ...]:
    lines = (AUTORES / autor / "grupos.jsonl").read_text(encoding="utf-8").splitlines()
    return tuple(json.loads(line) for line in lines if line.strip())


@cache
def vocabulario() -> Vocabulario:
    return Vocabulario.de(_canonicos())


@cache
def lidas(autor: str) -> tuple[Documento, ...]:
    """Read each of an author's messages, and return the results as JSON objects."""
    return tuple(lida(each) for each in mensagens(autor))


def lida(mensagem: Documento) -> Documento:
    sent = datetime.fromisoformat(mensagem["enviado_em"])
    where = {"grupo": mensagem.get("grupo"), "regiao": mensagem.get("regiao")}
    return documento(ler(mensagem["texto"], enviado_em=sent, vocabulario=vocabulario(), **where))


@dataclass(slots=True)
class Placar:
    ofertas: Counter[str] = field(default_factory=Counter)
    vagas: Counter[str] = field(default_factory=Counter)
    campos: Counter[str] = field(default_factory=Counter)
    mensagens: int = 0
    categorias: int = 0
    com_categoria: int = 0  # number of messages that are labelled with a category

    def somar(self, mensagem: Documento, lida: Documento) -> None:
        self.mensagens += 1
        if mensagem["categoria"] is not None:  # the labels of rejected vacancies have no category
            self.com_categoria += 1
            self.categorias += lida["categoria"] == mensagem["categoria"]
        self.ofertas[_resultado(mensagem["eh_oferta"], lida["eh_oferta"])] += 1
        expected, found = por_chave(mensagem), por_chave(lida, apelidos=True)
        self.vagas["tp"] += len(expected.keys() & found.keys())
        self.vagas["fp"] += len(found.keys() - expected.keys())
        self.vagas["fn"] += len(expected.keys() - found.keys())
        for key in expected.keys() & found.keys():
            for name in CAMPOS:
                self.campos[name] += igual(name, expected[key].get(name), found[key].get(name))

    @property
    def oferta(self) -> float:
        return f1(self.ofertas)

    @property
    def vaga(self) -> float:
        return f1(self.vagas)

    @property
    def categoria(self) -> float:
        return self.categorias / max(1, self.com_categoria)

    def campo(self, name: str) -> float:
        """Among the vacancies with a correct key, return the share in which this field is correct too."""
        return self.campos[name] / max(1, self.vagas["tp"])


def placar(autores: Iterable[str]) -> Placar:
    total = Placar()
    for autor in autores:
        for expected, found in zip(mensagens(autor), lidas(autor), strict=True):
            total.somar(expected, found)
    return total


def por_chave(documento: Documento, *, apelidos: bool = False) -> dict[tuple[object, ...], Documento]:
    """Return a dictionary of the vacancies in a message. The key consists of the hospital, the day, the period and the
    speciality. With ``apelidos``, canonical names replace unambiguous aliases in the key.
    """
    found: dict[tuple[object, ...], Documento] = {}
    for each in documento["vagas"] if documento["eh_oferta"] else ():
        parts = (each["hospital"], each["data"], each["periodo"], each["especialidade"])
        key = resolvida(*parts) if apelidos else (norma(parts[0]), parts[1], parts[2], norma(parts[3]))
        found.setdefault(key, each)
    return found


def resolvida(hospital: str, data: str, periodo: str, especialidade: str) -> tuple[object, ...]:
    """Return the key of a vacancy that was read, with unambiguous aliases replaced by canonical names."""
    hospitals, areas = _apelidos()
    place, area = norma(hospital), norma(especialidade)
    return hospitals.get(place, place), data, str(periodo), areas.get(area, area)


def igual(name: str, expected: Any, found: Any) -> bool:
    if name == "valor" and expected is not None and found is not None:
        return abs(float(expected) - float(found)) < 0.01
    return norma(expected) == norma(found)


def norma(text: object) -> str | None:
    if text is None:
        return None
    plain = unicodedata.normalize("NFD", str(text).lower())
    letters = "".join(char for char in plain if unicodedata.category(char) != "Mn")
    return re.sub(r"[^a-z0-9]+", " ", letters).strip() or None


def f1(counts: Counter[str]) -> float:
    return 2 * counts["tp"] / max(1, 2 * counts["tp"] + counts["fp"] + counts["fn"])


def tabela(rows: Sequence[Sequence[str]]) -> str:
    """Format rows as a Markdown table. The first row is the header."""
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]))]
    lines = [
        "| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) + " |" for row in rows
    ]
    return "\n".join((lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]))


def _resultado(expected: bool, found: bool) -> str:
    return ("tp" if found else "fn") if expected else ("fp" if found else "tn")


@cache
def _canonicos() -> Documento:
    return json.loads((AUTORES / "canonicos.json").read_text(encoding="utf-8"))  # type: ignore[no-any-return]


@cache
def _apelidos() -> tuple[dict[str | None, str | None], dict[str | None, str | None]]:
    ambiguous = {norma(each) for each in _canonicos()["aliases_ambiguos"]}
    hospitals = {
        norma(alias): norma(each["canonico"])
        for each in _canonicos()["hospitais"]
        for alias in each["aliases"]
        if norma(alias) not in ambiguous
    }
    areas = {
        norma(alias): norma(each["canonico"])
        for each in reversed(_canonicos()["especialidades"])
        for alias in each["aliases"]
    }
    return hospitals, areas
