"""``batuta agendamentos avaliar``."""

import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.contexts.agendamentos.leitura import Leitura
from app.contexts.agendamentos.linhas import Lida, Recusa
from app.contexts.agendamentos.model import recusada
from app.contexts.agendamentos.normalizacao import documento_em_json, endereco_em_json, lido_pelas_regras
from batuta.cli.desk import JsonFlag, desk_of, wait_for
from batuta.kernel.clock import SystemClock
from batuta.kernel.json import Json

FileArgument = Annotated[Path, typer.Argument(exists=True, dir_okay=False, readable=True, metavar="ARQUIVO")]
ADDRESS = ("logradouro", "numero", "complemento", "bairro", "cidade", "uf", "cep")
DOCUMENT = ("cpf", "rg", "orgao_emissor", "uf_emissor")


def avaliar(
    context: typer.Context,
    arquivo: FileArgument,
    saida: Annotated[Path, typer.Option("--saida", dir_okay=False)],
    as_json: JsonFlag = False,
) -> None:
    """What the rules make of every row, without a database."""
    desk = desk_of(context)
    lida = wait_for(_read(arquivo.read_bytes(), arquivo.name))
    clock = SystemClock()
    began = clock.monotonic()
    told = [dict(_predicted(row)) for row in lida.linhas]
    seconds = max(clock.monotonic() - began, 1e-9)
    saida.write_text("".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in told), encoding="utf-8")
    document = {"linhas": len(told), "saida": str(saida), "linhas_por_segundo": round(len(told) / seconds)}
    desk.show(document, as_json, lambda: desk.say(desk.texts()("cli.agendamentos.evaluated", **document)))


COMMANDS: dict[str, Callable[..., None]] = {"avaliar": avaliar}


async def _read(content: bytes, name: str) -> Lida:
    try:
        return await Leitura(SystemClock()).ler(content, name)
    except Recusa as refused:
        raise recusada(refused) from None


def _predicted(row: Mapping[str, Any]) -> Iterator[tuple[str, Json]]:
    endereco, documento = lido_pelas_regras(row.get("endereco_completo"), row.get("documento_completo"), row.get("cep"))
    address, document = endereco_em_json(endereco), documento_em_json(documento)
    yield "linha", row["linha"]
    yield "endereco_normalizado", {each: address[each] for each in ADDRESS}
    yield "cpf", documento.cpf
    yield "rg", documento.rg
    yield "documento_normalizado", {each: document[each] for each in DOCUMENT}
    yield "data", row.get("data_agendamento")
    yield "hora", row.get("hora_agendamento")
    yield "telefone", row.get("telefone")
