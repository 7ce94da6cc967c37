"""Choose the doctors to whom a vacancy is offered first. One statement scores every doctor who fits:

    +100 worked a shift for us, +50 more in the same hospital    +50 × qualification (0 to 1)
    +30 never written to, +20 last written to 7 to 30 days ago, −50 less than 7 days ago
    +40 the same speciality, +20 a part of it

A doctor is excluded for one of these reasons:
- The doctor has no valid number, has opted out or probably opted out, or is paused or cooling off.
- The team is talking with the doctor, or the next contact is scheduled for later.
- The doctor has reached the weekly limit, or has another message that is queued, or that may or may not have
  been sent.
- The doctor was already offered this or an equal vacancy, or has another shift at that time.
"""

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import field
from datetime import timedelta
from enum import StrEnum
from functools import cache
from pathlib import Path
from typing import Final

from app.contexts.leitura_grupos.api import chave
from app.contexts.mensagens.api import CONTACTS_IN_A_WEEK, IMPEDIMENTOS
from app.contexts.nomes.api import Dicionario, Nomes
from app.contexts.plantoes.horario import condicao_de_conflito
from app.contexts.plantoes.model import VagaDesconhecida
from batuta.kernel import Clock, dataclass
from batuta.sql import AsJson, Database, Dialect, Query, Reading, Row, load_text

WEEK: Final = timedelta(days=7)
MONTH: Final = timedelta(days=30)
MOST: Final = 500
_SEPARATES: Final = re.compile(r"[/,;+&|]|(?<!\s)\s++e\s++", re.IGNORECASE)
# Words that are ignored when two specialities are compared.
_MIUDAS: Final = frozenset(
    {"de", "da", "do", "e", "em", "geral", "medica", "medico", "medicina", "cirurgia", "clinica"}
)


class Impedimento(StrEnum):
    """Reasons that prevent offering a vacancy to a doctor, in order of precedence."""

    DESCONHECIDO = "desconhecido"
    CADASTRO_REMOVIDO = "cadastro_removido"
    OPTOUT = "optout"
    OPTOUT_PROVAVEL = "optout_provavel"
    TELEFONE_INVALIDO = "telefone_invalido"
    JA_OFERECIDA = "ja_oferecida"
    JA_TEM_PLANTAO = "ja_tem_plantao"
    CONVERSA_HUMANA = "conversa_humana"
    EM_PAUSA = "em_pausa"
    ESFRIANDO = "esfriando"
    PROXIMO_CONTATO = "proximo_contato"
    LIMITE_CONTATOS = "limite_contatos"
    NA_FILA = "na_fila"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidato:
    """A doctor who fits a vacancy. ``impedimento`` is None if the vacancy may be offered to this doctor."""

    cliente_id: str
    telefone: str
    nome: str | None
    pontos: float
    impedimento: Impedimento | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Escolha:
    """The best doctors for a vacancy. ``aptos`` counts all doctors to whom the vacancy may be offered. ``impedidos``
    counts the other doctors of the same speciality, by reason.
    """

    candidatos: tuple[Candidato, ...] = ()
    aptos: int = 0
    impedidos: Mapping[Impedimento, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class CandidateQueries:
    words: Query
    vacancy: Query
    consider: Query


class Candidatos:
    def __init__(self, database: Database, dicionario: Dicionario, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._clock = clock
        self._queries = candidate_queries(database.dialect)

    async def candidatos(self, vaga_id: str, limite: int) -> list[Candidato]:
        """Return the doctors to whom the vacancy may be offered, best first. Raises VagaDesconhecida if the vacancy
        does not exist.
        """
        return list((await self.escolher(vaga_id, limite)).candidatos)

    async def escolher(self, vaga_id: str, limite: int) -> Escolha:
        """Choose the best ``limite`` doctors for a vacancy. Count the doctors to whom it may not be offered, by reason.
        Raises VagaDesconhecida if the vacancy does not exist.
        """
        vaga = await self._database.one(self._queries.vacancy, id=vaga_id)
        if vaga is None:
            raise VagaDesconhecida(id=vaga_id)
        exact, partial = await self._specialities(vaga)
        rows = await self._consider(self._database, vaga, exact, partial, None, limite)
        counted = {row["impedimento"]: int(row["quantos"]) for row in rows}
        return Escolha(
            candidatos=tuple(_candidato(row) for row in rows if row["impedimento"] is None),
            aptos=counted.pop(None, 0),
            impedidos={Impedimento(reason): count for reason, count in counted.items()},
        )

    async def examinar(self, reading: Reading, vaga: Row, clientes: Sequence[str]) -> dict[str, Candidato]:
        """Return the doctors in ``clientes`` by id, each with the reason (``impedimento``), if any, that prevents
        offering the vacancy. Unknown ids are omitted.
        """
        rows = await self._consider(reading, vaga, (), (), clientes, len(clientes))
        return {each.cliente_id: each for each in map(_candidato, rows)}

    async def _specialities(self, vaga: Row) -> tuple[list[str], list[str]]:
        """Return two lists of specialities, spelled as in the doctors' rows: other spellings of the vacancy's
        speciality, and specialities that are wider or narrower.
        """
        names = await self._dicionario.nomes()
        wanted = formas_da_especialidade(names, vaga)
        written = [str(row["especialidade"]) for row in await self._database.all(self._queries.words)]
        exact = [each for each in written if eh_a_mesma(each, wanted, names.vocabulario.especialidades.valor)]
        return exact, [each for each in written if each not in exact and eh_parte(each, wanted)]

    async def _consider(
        self,
        reading: Reading,
        vaga: Row,
        exact: Sequence[str],
        partial: Sequence[str],
        clientes: Sequence[str] | None,
        limite: int,
    ) -> Sequence[Row]:
        now = self._clock.now()
        return await reading.all(
            self._queries.consider, id=vaga["id"], hospital_id=vaga["hospital_id"], exatas=AsJson([*exact]),
            parciais=AsJson([*partial]), clientes=AsJson([*(clientes or ())]), automatico=clientes is None, now=now,
            week_ago=now - WEEK, month_ago=now - MONTH, contatos=CONTACTS_IN_A_WEEK, limite=limite,
        )  # fmt: skip


def formas_da_especialidade(names: Nomes, vaga: Row) -> set[str]:
    """Return the normalised forms of a vacancy's speciality: its name and the spellings in the dictionary."""
    forms = {form for form, id in names.especialidades.items() if id == vaga["especialidade_id"]}
    return forms | {chave(vaga["especialidade"])}


def eh_a_mesma(
    escrita: str, procuradas: Collection[str], canonica: Callable[[str], str | None] = lambda _: None
) -> bool:
    """Return whether a doctor's speciality as written, such as 'UTI / Cardiologia', contains the wanted speciality.
    ``procuradas`` has the normalised forms of the wanted speciality. ``canonica`` returns the vocabulary's name for a
    text.
    """
    parts = (escrita, *_SEPARATES.split(escrita))
    return any(form in procuradas for part in parts for form in (chave(part), chave(canonica(part) or "")) if form)


def eh_parte(escrita: str, procuradas: Iterable[str]) -> bool:
    """Return whether one speciality is part of the other: every word of 'Cardiologia' occurs in 'Cardiologia
    pediátrica'.
    """
    said = _words(chave(escrita))
    return bool(said) and any(words and (said <= words or words <= said) for words in map(_words, procuradas))


@cache
def candidate_queries(dialect: Dialect) -> CandidateQueries:
    text = (Path(__file__).parent / "sql" / "candidatos.sql").read_text(encoding="utf-8")
    text = text.replace("{impedimentos}", IMPEDIMENTOS).replace("{conflito}", condicao_de_conflito("held", "wanted"))
    for name, kind in (("exatas", "text"), ("parciais", "text"), ("clientes", "uuid")):
        values = f"SELECT value FROM json_each(:{name})"
        if dialect == "postgres":
            values = f"SELECT jsonb_array_elements_text(:{name})::{kind}"
        text = text.replace(f"{{{name}}}", values)
    return load_text(CandidateQueries, text, "candidatos.sql", dialect)


def _words(form: str) -> frozenset[str]:
    return frozenset(form.split()) - _MIUDAS


def _candidato(row: Row) -> Candidato:
    return Candidato(
        cliente_id=str(row["id"]),
        telefone=row["telefone"],
        nome=row["primeiro_nome"],
        pontos=float(row["pontos"]),
        impedimento=None if row["impedimento"] is None else Impedimento(row["impedimento"]),
    )
