"""Measure how well appointments are read, on the labelled rows of every author: ``python -m
tests.julia.agendamentos.medir``. ``--velocidade`` measures only the speed.

In each row, ``celulas`` contains the cells as typed, and the other keys contain the correct values. A value that was
read is correct if it equals its label, ignoring case, accents and punctuation.
"""

import json
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from app.contexts.agendamentos.documento.documento import documento_de
from app.contexts.agendamentos.endereco.endereco import Endereco, endereco_de
from app.contexts.agendamentos.planilha.celulas import data_da, dito, documento_da, hora_da, telefone_da
from app.contexts.agendamentos.texto import plano

AUTORES: Final = Path(__file__).parent.parent / "leitura_grupos" / "autores"
ENDERECO: Final = ("logradouro", "numero", "complemento", "bairro", "cidade", "uf", "cep")
DOCUMENTO: Final = ("cpf", "rg", "orgao_emissor", "uf_emissor")
EXTRAS: Final = ("telefone", "data", "hora")
WARM: Final = 100  # rows that are read before the speed is measured
COLUNAS: Final = ("endereço", *ENDERECO, *DOCUMENTO, *EXTRAS)

Linha = Mapping[str, Any]


def autores() -> list[str]:
    return sorted(each.parent.name for each in AUTORES.glob("*/agendamentos.jsonl"))


def linhas_de(autor: str) -> list[Linha]:
    lines = (AUTORES / autor / "agendamentos.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line) for line in lines]


def prever(celulas: Mapping[str, Any], ler: Callable[[str], Endereco] = endereco_de) -> dict[str, str | None]:
    """Read the cells of one row as the import does."""
    endereco = ler(dito(celulas["endereco"]) or "")
    documento = documento_de(documento_da(celulas["documento"]) or "")
    dia = data_da(celulas["data"])
    return {
        **{each: getattr(endereco, each) for each in ENDERECO},
        **{each: getattr(documento, each) for each in DOCUMENTO},
        "telefone": telefone_da(celulas["telefone"]),
        "data": None if dia is None else dia.isoformat(),
        "hora": hora_da(celulas["hora"]),
    }


def rotulo(linha: Linha) -> dict[str, str | None]:
    return {
        **{each: (linha["endereco_normalizado"] or {}).get(each) for each in ENDERECO},
        **{each: (linha["documento_normalizado"] or {}).get(each) for each in DOCUMENTO},
        **{each: linha[each] for each in EXTRAS},
    }


def iguais(campo: str, um: str | None, outro: str | None) -> bool:
    return _bare(campo, um) == _bare(campo, outro)


def _bare(campo: str, valor: str | None) -> str | None:
    if not valor:
        return None
    said = re.sub(r"[^a-z0-9]+", " ", plano(str(valor))).strip()
    return said.replace(" ", "") if campo in ("numero", "cep", "rg") else said


def acertos(linhas: Iterable[Linha], ler: Callable[[str], Endereco] = endereco_de) -> dict[str, float]:
    """Return the share of rows that were read correctly, for each field and for the whole address."""
    right: Counter[str] = Counter()
    count = 0
    for linha in linhas:
        read, label = prever(linha["celulas"], ler), rotulo(linha)
        same = {each for each in label if iguais(each, read[each], label[each])}
        right.update(same)
        right["endereço"] += same.issuperset(ENDERECO)
        count += 1
    return {each: right[each] / count for each in COLUNAS}


def tabela(leitores: Mapping[str, Callable[[str], Endereco]]) -> str:
    """Return a table with the scores of each author. ``leitores`` contains one address reader for each author."""
    return _format([(autor, acertos(linhas_de(autor), ler)) for autor, ler in leitores.items()])


def _format(rows: Sequence[tuple[str, Mapping[str, float]]]) -> str:
    short = {
        "endereço": "END.",
        "logradouro": "lograd",
        "complemento": "compl",
        "orgao_emissor": "orgao",
        "uf_emissor": "uf_em",
    }
    head = f"{'author':10}" + "".join(f"{short.get(each, each):>9}" for each in COLUNAS)
    lines = [f"{autor:10}" + "".join(f"{right[each]:9.3f}" for each in COLUNAS) for autor, right in rows]
    return "\n".join([head, *lines])


def velocidade() -> tuple[float, float]:
    """Return how many rows one process reads per second of processor time: rows that this process has not read before,
    and the same rows again. Reading a row means reading its address and its document.
    """
    rows = [linha["celulas"] for autor in autores() for linha in linhas_de(autor)]
    cells = [(dito(row["endereco"]) or "", documento_da(row["documento"]) or "") for row in rows]
    _seconds(cells[:WARM])  # loads the weights and the list of municipalities
    new = cells[WARM:]
    return len(new) / _seconds(new), len(new) / _seconds(new)


def _seconds(cells: Iterable[tuple[str, str]]) -> float:
    began = time.process_time()
    for endereco, documento in cells:
        endereco_de(endereco)
        documento_de(documento)
    return time.process_time() - began


def main(arguments: Sequence[str]) -> int:
    first, again = velocidade()  # before the table, for which the same rows are read
    if "--velocidade" not in arguments:
        from tests.julia.agendamentos.treinar import leitores_sem

        print(tabela(leitores_sem()))
    print(f"{first:,.0f} rows/s read for the first time, {again:,.0f} rows/s read again")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
