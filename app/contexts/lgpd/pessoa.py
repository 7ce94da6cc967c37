"""Find one person by a phone number or an id. The result has all numbers, addresses and ids under which the tables
store the person.
"""

import asyncio
import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, Final

from app.contexts.agendamentos.api import decifrado
from app.contexts.comum.telefone import PERSON, chave, forms, telefone_de
from app.contexts.lgpd.dados_pessoais import SEM_TELEFONE
from batuta import BatutaError
from batuta.errors import AmbiguousId
from batuta.kernel import PLAIN, Encryption, Json, dataclass
from batuta.sql import AsJson, Database, Query, Reading, Row, full_id, load_queries

SHORTEST_PHONE: Final = 12  # digits with the country code; fewer digits could be a CPF or the number of another area
SHOWN: Final = 5
PAGE: Final = 1000
_FIRST_ID: Final = "00000000-0000-0000-0000-000000000000"
_PHONE: Final = re.compile(r"\+?[0-9() .-]+")
_APAGADO: Final = SEM_TELEFONE.strip("'")


class PessoaDesconhecida(BatutaError):
    """Raised if no table has data about the person. The error text omits the number, because it may be a real person's
    number.
    """

    sentence = (
        "no data of this person: write the number with country code and area code, as in 5511900000001, or the id of a"
        " doctor, of an author in groups or of an appointment"
    )


class NumeroDeVarias(BatutaError):
    """Raised if people with different names share a number, because their data must not be mixed."""

    sentence = "{pessoas} people have this number: name one of these ids instead: {ids}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Alvo:
    """One person's identifiers. ``chaves`` are the phone numbers without the ninth digit. ``lids`` are the hidden
    addresses. ``nomes`` are first names that distinguish the person from others with the same number.
    """

    chaves: tuple[str, ...] = ()
    lids: tuple[str, ...] = ()
    medicos: tuple[str, ...] = ()
    contatos: tuple[str, ...] = ()
    conversas: tuple[str, ...] = ()
    mensagens: tuple[str, ...] = ()
    vagas: tuple[str, ...] = ()
    agendamentos: tuple[str, ...] = ()
    tarefas: tuple[str, ...] = ()
    nomes: tuple[str, ...] = ()
    escritos: tuple[str, ...] = ()  # the names as they are spelled in the tables

    @property
    def quem(self) -> list[str]:
        """Every text by which a table may identify the person: the numbers with and without the ninth digit, and the
        addresses.
        """
        numbers = dict.fromkeys(form for each in self.chaves for form in (*forms(each), each))
        return [*numbers, *(f"{number}@{PERSON}" for number in numbers), *self.lids]

    @property
    def contem(self) -> list[str]:
        return [*dict.fromkeys(form for each in self.chaves for form in (*forms(each), each)), *self.lids]

    def has(self, escrito: str) -> bool:
        """Return whether a number or an id that an operator wrote belongs to this person."""
        telefone = telefone_escrito(escrito)
        return chave(telefone) in self.chaves if telefone else escrito.strip().lower() in self.ids

    @property
    def ids(self) -> set[str]:
        return {*self.medicos, *self.contatos, *self.agendamentos}

    def join(self, other: "Alvo") -> "Alvo":
        both = {name: (*getattr(self, name), *getattr(other, name)) for name in self.__dataclass_fields__}
        return Alvo(**{name: tuple(dict.fromkeys(values)) for name, values in both.items()})

    def em_json(self) -> dict[str, Json]:
        return {name: [*values] for name, values in asdict(self).items()}


def alvo_de(document: Mapping[str, Sequence[str]]) -> Alvo:
    """Restore the identifiers that ``Alvo.em_json`` stored."""
    return Alvo(**{name: tuple(values) for name, values in document.items()})


def telefone_escrito(escrito: str) -> str | None:
    """Return a phone number's digits with its country code, or None if the text is not a phone number (an id, for
    example).
    """
    telefone = telefone_de(escrito) if _PHONE.fullmatch(escrito.strip()) else None
    return telefone if telefone is not None and len(telefone) >= SHORTEST_PHONE else None


@dataclass(frozen=True, slots=True)
class PersonQueries:
    doctor: Query
    contact: Query
    appointment: Query
    hidden: Query
    contacts: Query
    doctors: Query
    conversations: Query
    posted: Query
    offers: Query
    appointments: Query
    encrypted: Query


class Pessoas:
    def __init__(self, database: Database, cifra: Encryption = PLAIN) -> None:
        """Create the service that finds people. ``cifra`` decrypts the documents in appointments."""
        self._database = database
        self._cifra = cifra
        self._queries = load_queries(PersonQueries, "sql/pessoa.sql", database.dialect)

    async def achar(self, escrito: str) -> Alvo:
        """Return a person's identifiers. ``escrito`` is a phone number, an id or the beginning of an id.

        Identifiers are returned even if no table has data about the person, so the caller must count the rows. Raises
        NumeroDeVarias if the number belongs to people with different names.
        """
        telefone = telefone_escrito(escrito)
        kind, id = ("telefone", "") if telefone else await self._kind(escrito)
        async with self._database.snapshot() as reading:
            match kind:
                case "clientes":
                    row = await reading.one(self._queries.doctor, id=id)
                    if row is None or row["telefone"] == _APAGADO:
                        raise PessoaDesconhecida
                    return await self._complete(reading, Alvo(chaves=(chave(row["telefone"]),)), _nome(row))
                case "contatos_grupo":
                    row = await reading.one(self._queries.contact, id=id)
                    assert row is not None
                    numbers = () if row["telefone"] is None else (chave(row["telefone"]),)
                    return await self._complete(reading, Alvo(chaves=numbers, lids=(row["jid"],), contatos=(id,)), None)
                case "appointments":
                    return await self._patient(reading, id)
                case _:
                    return await self._complete(reading, Alvo(chaves=(chave(telefone or ""),)), None)

    async def completar(self, alvo: Alvo) -> Alvo:
        """Add to a person's stored identifiers the identifiers that have since been added to the person's rows."""
        async with self._database.snapshot() as reading:
            whole = alvo.join(await self._close(reading, alvo))
            visits = await self._appointments(reading, whole, [])
        firsts = {_first(row["nome_paciente"]) for row in visits}
        names = whole.nomes or (tuple(firsts) if len(firsts) == 1 else ())
        return whole.join(_visits([row for row in visits if _first(row["nome_paciente"]) in names]))

    async def _kind(self, escrito: str) -> tuple[str, str]:
        """Return the table that contains an id, and the full id. Raises AmbiguousId if several ids begin with
        ``escrito``, even in different tables: ids created at the same instant begin with the same characters.
        """
        found = [
            (table, id)
            for table in ("clientes", "contatos_grupo", "appointments")
            if (id := await full_id(self._database, table, escrito)) is not None
        ]
        if not found:
            raise PessoaDesconhecida
        if len(found) > 1:
            raise AmbiguousId(id=escrito, candidates=", ".join(id for _, id in found))
        return found[0]

    async def _complete(self, reading: Reading, known: Alvo, nome: str | None) -> Alvo:
        """Extend the identifiers in ``known`` with the person's other identifiers. ``nome`` is the person's name; it is
        given if the caller chose one of several people with the same phone number. Without ``nome``, raise
        NumeroDeVarias if the rows with the number have different first names.
        """
        whole = await self._close(reading, known)
        doctors = await reading.all(self._queries.doctors, quem=AsJson(whole.quem))
        cpfs = [form for row in doctors if row["cpf"] for form in _cpf_forms(row["cpf"])]
        visits = await self._appointments(reading, whole, cpfs)
        if nome is not None:
            visits = [row for row in visits if row["cpf"] in cpfs or _is_same(row["nome_paciente"], nome)]
        else:
            _require_one([(_nome(row), str(row["id"])) for row in doctors] + _patients(visits))
        names = [nome or "", *(_nome(row) for row in doctors), *(row["nome_paciente"] for row in visits)]
        return whole.join(_visits(visits)).join(Alvo(nomes=tuple(filter(None, map(_first, names)))))

    async def _patient(self, reading: Reading, id: str) -> Alvo:
        """Return the identifiers of the patient of one appointment. The other identifiers of the patient's phone number
        are added only if no other person has the same number.
        """
        stored = await reading.one(self._queries.appointment, id=id)
        assert stored is not None
        row = decifrado(stored, self._cifra)
        numbers = () if row["telefone"] is None else (chave(row["telefone"]),)
        alvo, cpfs = Alvo(chaves=numbers), [] if row["cpf"] is None else _cpf_forms(row["cpf"])
        visits = await self._appointments(reading, alvo, cpfs)
        own = [each for each in visits if each["cpf"] in cpfs or _is_same(each["nome_paciente"], row["nome_paciente"])]
        doctors = await reading.all(self._queries.doctors, quem=AsJson(alvo.quem))
        others = [each for each in doctors if not _is_same(_nome(each), row["nome_paciente"])]
        patient = _visits([row, *own]).join(Alvo(nomes=(_first(row["nome_paciente"]),)))
        if others or len(own) < len(visits):
            return patient  # another person has the number: only the appointments are this patient's
        return (await self._close(reading, alvo)).join(patient)

    async def _appointments(self, reading: Reading, alvo: Alvo, cpfs: Sequence[str]) -> list[dict[str, Any]]:
        """Return the appointments that have one of the person's phone numbers or addresses, or one of the CPF numbers
        in ``cpfs``.
        """
        ids = await self._find_by_document(reading, cpfs) if cpfs else []
        asked = {"quem": AsJson(alvo.quem), "cpfs": AsJson([*cpfs]), "ids": AsJson(ids)}
        return [decifrado(row, self._cifra) for row in await reading.all(self._queries.appointments, **asked)]

    async def _find_by_document(self, reading: Reading, cpfs: Sequence[str]) -> list[Json]:
        """Return the ids of the appointments whose encrypted CPF is one of ``cpfs``. This method decrypts the
        documents, because the database cannot compare encrypted values.
        """
        found, after = list[Json](), _FIRST_ID
        while rows := await reading.all(self._queries.encrypted, after=after, limit=PAGE):
            found += [str(row["id"]) for row in rows if decifrado(row, self._cifra)["cpf"] in cpfs]
            after = str(rows[-1]["id"])
            await asyncio.sleep(0)
        return found

    async def _close(self, reading: Reading, known: Alvo) -> Alvo:
        """Extend the known identifiers with the hidden addresses, numbers and ids that belong to the same person."""
        whole = known
        for _ in range(2):  # a hidden address leads to a number, which leads to the other addresses
            quem = AsJson(whole.quem)
            hidden = await reading.all(self._queries.hidden, quem=quem)
            contacts = await reading.all(self._queries.contacts, quem=quem)
            phones = [row["telefone"] for row in (*hidden, *contacts) if row["telefone"]]
            whole = whole.join(
                Alvo(
                    chaves=tuple(map(chave, phones)),
                    lids=tuple([row["lid"] for row in hidden] + [row["jid"] for row in contacts]),
                    contatos=_ids(contacts),
                    escritos=tuple(row["nome"] for row in contacts if row["nome"]),
                )
            )
        quem = AsJson(whole.quem)
        doctors = await reading.all(self._queries.doctors, quem=quem)
        written = [name for row in doctors for name in (_nome(row), row["primeiro_nome"], row["sobrenome"]) if name]
        whole = whole.join(Alvo(medicos=_ids(doctors), escritos=tuple(written)))
        contatos = AsJson([*whole.contatos])
        return whole.join(
            Alvo(
                conversas=_ids(await reading.all(self._queries.conversations, medicos=AsJson([*whole.medicos]))),
                mensagens=_ids(await reading.all(self._queries.posted, contatos=contatos, quem=quem)),
                vagas=_ids(await reading.all(self._queries.offers, contatos=contatos)),
            )
        )


def _visits(rows: Sequence[Mapping[str, Any]]) -> Alvo:
    tasks = tuple(str(row["normalization_job_id"]) for row in rows if row["normalization_job_id"] is not None)
    return Alvo(agendamentos=_ids(rows), tarefas=tasks)


def _ids(rows: Iterable[Row | Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(str(row["id"]) for row in rows))


def _patients(rows: Sequence[Mapping[str, Any]]) -> list[tuple[str, str]]:
    return [(row["nome_paciente"], str(row["id"])) for row in rows]


def _require_one(named: Sequence[tuple[str, str]]) -> None:
    """Raise NumeroDeVarias if the first names differ, because the rows then belong to different people. ``named`` has
    the name and the id of each row.
    """
    people: dict[str, str] = {}
    for nome, id in named:
        if first := _first(nome):
            people.setdefault(first, id)
    if len(people) > 1:
        more = ", …" if len(people) > SHOWN else ""
        raise NumeroDeVarias(pessoas=len(people), ids=", ".join([*people.values()][:SHOWN]) + more)


def _nome(row: Row) -> str:
    return " ".join(each for each in (row["primeiro_nome"], row["sobrenome"]) if each)


def _is_same(one: str, other: str) -> bool:
    """Return whether two names may belong to the same person: the first names are equal, or one name is empty."""
    first, second = _first(one), _first(other)
    return not first or not second or first == second


def _first(nome: str) -> str:
    plain = unicodedata.normalize("NFKD", nome.casefold())
    words = "".join(sign for sign in plain if not unicodedata.combining(sign)).split()
    return next((word for word in words if word not in ("dr", "dr.", "dra", "dra.")), "")


def _cpf_forms(cpf: str) -> list[str]:
    digits = re.sub(r"[^0-9]", "", cpf)
    return [cpf, digits, f"{digits[:3]}.{digits[3:6]}.{digits[6:9]}-{digits[9:]}"]
