"""Score the reader of group messages and the reader of appointments on the files of an author who is new to them:
``python -m tests.julia.leitura_grupos.novo_autor PASTA``.

The folder contains ``grupos.jsonl``, ``agendamentos.jsonl`` or both, labelled according to the rules in
``autores/README.md``. The readers run with their stored weights. The command fits no model and writes no file.

``--erros`` also prints every message and row that was read incorrectly.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any

from app.contexts.agendamentos.planilha.titulos import campo_de
from app.contexts.esteira.ensaio import destino
from app.contexts.leitura_grupos.api import Leitura, heuristica, ler
from app.contexts.leitura_grupos.documento import documento
from app.contexts.leitura_grupos.leitor import SAO_PAULO
from app.contexts.nomes.api import Nomes
from app.contexts.nomes.canonicos import nomes_conhecidos
from app.contexts.vagas.limiares import Limiares
from tests.julia.agendamentos import medir as agendamentos
from tests.julia.leitura_grupos.placar import AUTORES, CAMPOS, Documento, Placar, igual, por_chave, resolvida, tabela

# The columns of a spreadsheet whose cells are read.
CELULAS: Mapping[str, str] = {
    "nome_paciente": "nome",
    "endereco_completo": "endereco",
    "documento_completo": "documento",
    **{each: each for each in ("data", "hora", "telefone")},
}


def main(arguments: Sequence[str]) -> int:
    folder = Path(next(each for each in arguments if not each.startswith("-")))
    names = nomes_conhecidos(json.loads((AUTORES / "canonicos.json").read_text(encoding="utf-8")))
    errors: list[str] = []
    if (file := folder / "grupos.jsonl").exists():
        print(_mensagens(_documentos(file), names, errors))
    if (file := folder / "agendamentos.jsonl").exists():
        print(_linhas([linha(each) for each in _documentos(file)], errors))
    if "--erros" in arguments:
        print("\n".join(errors))
    return 0


def _documentos(file: Path) -> list[Documento]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines() if line.strip()]


def linha(row: Documento) -> Documento:
    """Return a labelled row in the format of the authors' files. In ``entrada``, the cells may be keyed by their column
    titles.
    """
    said = row.get("celulas") or row["entrada"]
    cells = {CELULAS.get(campo_de(title) or "", title): cell for title, cell in said.items()}
    address = row.get("endereco_normalizado") or {each: row.get(each) for each in agendamentos.ENDERECO}
    papers = {each: row.get(each) for each in agendamentos.DOCUMENTO} | dict(row.get("documento_normalizado") or {})
    return {**row, "celulas": cells, "endereco_normalizado": address, "documento_normalizado": papers}


def _mensagens(messages: Sequence[Documento], names: Nomes, errors: list[str]) -> str:
    score, limits = Placar(), Limiares()
    imported = right = 0
    ranges = {low: [0, 0] for low in (0.0, 0.5, 0.8, 0.9, 0.95, 0.98)}
    for each in messages:
        sent, where = datetime.fromisoformat(each["enviado_em"]), each.get("regiao")
        read = ler(each["texto"], enviado_em=sent, grupo=each.get("grupo"), regiao=where, vocabulario=names.vocabulario)
        score.somar(each, documento(read))
        nota = heuristica(each["texto"], vocabulario=names.vocabulario)
        day = sent.astimezone(SAO_PAULO).date()
        judged = [
            (is_right, vaga.confianca, destino(vaga, read, nota, nomes=names, regiao=where, hoje=day, limiares=limits))
            for vaga, is_right in zip(read.vagas, _certas(each, read), strict=True)
        ]
        imported += sum(fate == "importada" for _, _, fate in judged)
        right += sum(fate == "importada" and is_right for is_right, _, fate in judged)
        for is_right, sure, _ in judged:
            counted = ranges[max(low for low in ranges if low <= sure)]
            counted[0] += 1
            counted[1] += is_right
        errors.extend(_erros(each, read, [fate for _, _, fate in judged]))
    counts = score.vagas
    labelled = counts["tp"] + counts["fn"]
    values = [
        f"{score.oferta:.3f}",
        f"{score.categoria:.3f}",
        f"{score.vaga:.4f}",
        str(counts["fp"]),
        str(counts["fn"]),
    ]
    return "\n\n".join(
        (
            f"{score.mensagens} messages, {labelled} vacancies",
            tabela(
                [
                    ["eh_oferta F1", "categoria", "vaga F1", "false", "missed", *CAMPOS],
                    [*values, *(f"{score.campo(name):.3f}" for name in CAMPOS)],
                ]
            ),
            f"imported {imported}, correct {right}: precision {right / max(1, imported):.3f}, "
            f"coverage {right / max(1, labelled):.3f}",
            tabela(
                [["confidence from", "vagas", "correct"]]
                + [[str(low), str(of), f"{good / max(1, of):.3f}"] for low, (of, good) in ranges.items()]
            ),
        )
    )


def _certas(message: Documento, read: Leitura) -> list[bool]:
    expected = por_chave(message)
    found = []
    for each in read.vagas:
        key = resolvida(each.hospital.valor, each.data.valor.isoformat(), each.periodo.valor, each.especialidade.valor)
        price = None if each.valor is None else each.valor.valor
        found.append(key in expected and igual("valor", expected[key].get("valor"), price))
    return found


def _erros(message: Documento, read: Leitura, fates: Sequence[str]) -> list[str]:
    said = documento(read)
    expected, found = por_chave(message), por_chave(said, apelidos=True)
    lines = [f"  category {said['categoria']}, not {message['categoria']}"] * (
        message["categoria"] not in (None, said["categoria"])
    )
    fate = {id(vaga): each for vaga, each in zip(said["vagas"], fates, strict=True)}
    lines += [
        f"  + {_dita(key, each)} {each['confianca']} {fate[id(each)]}"
        for key, each in found.items()
        if key not in expected
    ]
    lines += [f"  - {_dita(key, each)}" for key, each in expected.items() if key not in found]
    for key in expected.keys() & found.keys():
        wrong = [name for name in CAMPOS if not igual(name, expected[key].get(name), found[key].get(name))]
        lines += [f"  ~ {_dita(key, found[key])} {name}: {expected[key].get(name)}" for name in wrong]
    return [f"{message['id']} ({message['enviado_em'][:10]})\n{message['texto']}", *lines, ""] if lines else []


def _dita(key: tuple[object, ...], vaga: Mapping[str, Any]) -> str:
    return " | ".join(str(each) for each in (*key, vaga["valor"]))


def _linhas(rows: Sequence[Documento], errors: list[str]) -> str:
    right = agendamentos.acertos(rows)
    for row in rows:
        read, label = agendamentos.prever(row["celulas"]), agendamentos.rotulo(row)
        wrong = [each for each in label if not agendamentos.iguais(each, read[each], label[each])]
        if wrong:
            errors.append(f"row {row['linha']}: {dict(row['celulas'])}")
            errors.extend(f"  {each}: {read[each]!r}, not {label[each]!r}" for each in wrong)
    table = tabela([["rows", *agendamentos.COLUNAS], [str(len(rows)), *(f"{right[each]:.3f}" for each in right)]])
    return f"\n{table}"


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
