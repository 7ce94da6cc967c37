"""Register doctors, from the API or from a CSV file.

If a number is already registered, its record does not change. The job `validar_telefones` checks the phones later.
Opt-outs are not checked on registration, because they are checked before every send.
"""

import csv
import io
import unicodedata
from collections.abc import Sequence
from dataclasses import asdict
from typing import Final

from app.contexts.comum.telefone import telefone_de
from batuta import BatutaError
from batuta.kernel import Clock, Ids, dataclass
from batuta.reasons import define
from batuta.sql import AuditLog, Database, Query, load_queries

BAD_PHONE = define("telefone_do_medico", "the phone is not a number with an area code, as in 11 90000-0001")
BAD_STATE = define("uf_do_medico", "the state is not a two-letter code such as SP")
# Names of the CSV columns, in lower case without accents.
COLUMNS: Final = {
    "telefone": "telefone", "celular": "telefone", "whatsapp": "telefone",
    "nome": "nome", "nome completo": "nome", "medico": "nome",
    "crm": "crm", "especialidade": "especialidade", "cidade": "cidade", "uf": "estado", "estado": "estado",
}  # fmt: skip
COUNTRY: Final = "55"
WITH_AREA_CODE: Final = (10, 11)


class ColunasFaltando(BatutaError):
    sentence = "the file has no column telefone: the first line must name the columns, for example {colunas}"


@dataclass(frozen=True, slots=True, kw_only=True)
class NovoMedico:
    telefone: str
    primeiro_nome: str | None = None
    sobrenome: str | None = None
    crm: str | None = None
    especialidade: str | None = None
    cidade: str | None = None
    estado: str | None = None


@dataclass(frozen=True, slots=True)
class LinhaRecusada:
    """A CSV line from which no doctor was registered, and the encoded reason for the rejection."""

    linha: int
    motivo: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Incluidos:
    novos: Sequence[str]  # ids
    repetidos: int


@dataclass(frozen=True, slots=True)
class CadastroQueries:
    add: Query


class Cadastro:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._ids = ids
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(CadastroQueries, "sql/cadastro.sql", database.dialect)

    async def incluir(self, medicos: Sequence[NovoMedico], *, por: str) -> Incluidos:
        """Register the doctors whose numbers are new, and record the operator in the audit log."""
        now, novos = self._clock.now(), []
        async with self._database.transaction() as transaction:
            for each in medicos:
                id = self._ids.new()
                if await transaction.run(self._queries.add, id=id, now=now, **asdict(each)):
                    novos.append(id)
            incluidos = Incluidos(novos=novos, repetidos=len(medicos) - len(novos))
            after = {"novos": len(novos), "repetidos": incluidos.repetidos}
            await self._audit.note(
                transaction, actor=por, action="medicos.incluir", subject="medicos", before=None, after=after, now=now
            )
        return incluidos


def ler_csv(content: bytes) -> tuple[list[NovoMedico], list[LinhaRecusada]]:
    """Parse a CSV file in UTF-8 or CP1252, with commas or semicolons. Return its doctors and the rejected lines. Raises
    ColunasFaltando if the first line names no phone column.
    """
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError:
        text = content.decode("cp1252", errors="replace")
    first = text.partition("\n")[0]
    lines = csv.reader(io.StringIO(text, newline=""), delimiter=";" if first.count(";") >= first.count(",") else ",")
    names = [COLUMNS.get(_plain(name)) for name in next(lines, [])]
    if "telefone" not in names:
        raise ColunasFaltando(colunas="telefone;nome;crm;especialidade;cidade;uf")
    medicos, recusadas = [], []
    for cells in lines:
        values = {name: cell.strip() for name, cell in zip(names, cells, strict=False) if name and cell.strip()}
        if not values:
            continue
        match _doctor_of(values):
            case NovoMedico() as medico:
                medicos.append(medico)
            case motivo:
                recusadas.append(LinhaRecusada(lines.line_num, motivo))
    return medicos, recusadas


def _doctor_of(values: dict[str, str]) -> NovoMedico | str:
    """Return the doctor that a CSV line describes, or the reason why the line is rejected."""
    telefone, estado = telefone_de(values.get("telefone", "")), values.get("estado", "").upper() or None
    if telefone is None or len(telefone) < min(WITH_AREA_CODE):
        return BAD_PHONE()
    if estado is not None and (len(estado) != 2 or not estado.isalpha()):
        return BAD_STATE()
    primeiro, _, resto = values.get("nome", "").partition(" ")
    return NovoMedico(
        telefone=COUNTRY + telefone if len(telefone) in WITH_AREA_CODE else telefone,
        primeiro_nome=primeiro or None,
        sobrenome=resto.strip() or None,
        crm=values.get("crm"),
        especialidade=values.get("especialidade"),
        cidade=values.get("cidade"),
        estado=estado,
    )


def _plain(name: str) -> str:
    letters = unicodedata.normalize("NFD", name.strip().lower())
    return "".join(each for each in letters if not unicodedata.combining(each))
