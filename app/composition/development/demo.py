"""Rows for a demonstration: fictitious people, chips and campaigns. Inserting them again adds nothing."""

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path
from uuid import UUID, uuid5
from zoneinfo import ZoneInfo

from batuta.sql import AsJson, Database, Query, Transaction, load_queries

# Namespace of the ids, so that they are the same everywhere and collide with no others.
_NAMES = UUID("0b9f3a52-6d1e-5c7a-9a55-ba70ba70ba70")
SENDER, LISTENER = "julia-sim", "escuta-sim"
SENDER_NUMBER, LISTENER_NUMBER = "5511900000000", "5511900900000"
# More senders for `make run`: each waits between two messages, so one alone would send a message per minute.
MORE_SENDERS = {f"julia-sim-{n}": str(5511900000000 + 900_000 * n) for n in range(2, 9)}
# Numbers from 55 11 90000-1000 on, which are not assigned.
FIRST_NUMBER = 5511900001000
ESPECIALIDADES = ("Clínica médica", "Pediatria", "Ortopedia", "Ginecologia", "Anestesiologia")
CIDADES = (("São Paulo", "SP"), ("Santo André", "SP"), ("Campinas", "SP"), ("Rio de Janeiro", "RJ"))
BATCH = 500
# Age of the demonstration's chips, enough for full trust.
IN_SERVICE = timedelta(days=60)


# Addresses as people type them, and documents. The CPFs have valid check digits and belong to no person.
ENDERECOS = (
    "R. das Demonstrações, {n} ap 4 - Jd. Modelo, São Paulo/SP 01310-200",
    "AV EXEMPLO {n} CASA 2 CENTRO CAMPINAS SP CEP 13010-001",
    "Endereço: Rua Fictícia, {n}, fundos. Bairro: Vl. Teste. Cidade: S. Bernardo do Campo. UF: SP. CEP: 09600-000",
    "Tv. Imaginária, s/nº - Tijuca - Rio de Janeiro - RJ",
    "não informado",
)
DOCUMENTOS = ("CPF: 529.982.247-25 RG 12.345.678-9 SSP/SP", "111.444.777-35", "CPF da mãe: 529.982.247-25", "pendente")


def planilha_de_demonstracao(hoje: date, linhas: int = 40) -> bytes:
    """Return a laboratory's spreadsheet as CSV, with the appointments of today and the next two weeks."""
    rows = [["Nome do Paciente", "Telefone", "Data", "Hora", "Unidade", "Endereço Completo", "Documento Completo"]]
    for n in range(1, linhas + 1):
        when = f"{hoje + timedelta(days=n % 15):%d/%m/%Y}"
        where, proof = ENDERECOS[n % len(ENDERECOS)].format(n=n), DOCUMENTOS[n % len(DOCUMENTOS)]
        phone, hour = f"(11) 90000-{n:04d}", f"{7 + n % 10:02d}:30"
        rows.append([f"Paciente Fictício {n:03d}", phone, when, hour, "Unidade Demonstração", where, proof])
    return "\n".join(";".join(row) for row in rows).encode()


@dataclass(frozen=True, slots=True)
class DemoQueries:
    begun: Query
    anybody: Query
    doctor: Query
    adopt: Query
    chip: Query
    campaign: Query


class Demo:
    def __init__(self, database: Database, zone: ZoneInfo) -> None:
        self._database = database
        self._zone = zone
        self._queries = load_queries(DemoQueries, Path(__file__).parent / "demo.sql", database.dialect)

    async def begin(self, *, now: datetime) -> bool:
        """Add the chips of the demonstration to an empty database. Return False if the database has doctors or
        campaigns of its own.
        """
        if await self._database.one(self._queries.begun, id=_chip_id(SENDER)) is not None:
            return True
        if await self._database.one(self._queries.anybody) is not None:
            return False
        async with self._database.transaction() as transaction:
            for instance, telefone in {SENDER: SENDER_NUMBER, **MORE_SENDERS}.items():
                await self._chip(transaction, instance, telefone, "julia", now)
            await self._chip(transaction, LISTENER, LISTENER_NUMBER, "listener", now)
        return True

    async def fill(self, medicos: int, *, now: datetime, campaign_at: datetime | None = None) -> dict[str, int]:
        """Insert the demonstration doctors, chips and campaigns, and return the number of new rows of each kind."""
        doctors = 0
        for first in range(1, medicos + 1, BATCH):
            async with self._database.transaction() as transaction:
                for n in range(first, min(first + BATCH, medicos + 1)):
                    doctors += await self._doctor(transaction, n, now)
        async with self._database.transaction() as transaction:
            chips = await self._chip(transaction, SENDER, SENDER_NUMBER, "julia", now)
            chips += await self._chip(transaction, LISTENER, LISTENER_NUMBER, "listener", now)
            campaigns = await self._campaign(transaction, "Demonstração: primeiro contato", "discovery", now, at=None)
            at = campaign_at or _next_morning(now, self._zone)
            campaigns += await self._campaign(transaction, "Demonstração: oferta", "oferta", now, at=at)
        return {"medicos": doctors, "chips": chips, "campanhas": campaigns}

    async def _doctor(self, transaction: Transaction, n: int, now: datetime) -> int:
        cidade, estado = CIDADES[n % len(CIDADES)]
        return await transaction.run(
            self._queries.doctor,
            id=str(uuid5(_NAMES, f"medico {n}")),
            telefone=str(FIRST_NUMBER + n),
            primeiro_nome="Pessoa",
            sobrenome=f"Fictícia {n:04d}",
            crm=f"{n:06d}",
            especialidade=ESPECIALIDADES[n % len(ESPECIALIDADES)],
            cidade=cidade,
            estado=estado,
            # One phone in ten is not checked yet.
            status_telefone="pendente" if n % 10 == 0 else "validado",
            now=now,
        )

    async def _chip(self, transaction: Transaction, instance: str, telefone: str, tipo: str, now: datetime) -> int:
        values = {
            "telefone": telefone,
            "instance": instance,
            "tipo": tipo,
            "since": now - IN_SERVICE,
            "trust": 90,
            "sends": tipo == "julia",
            "now": now,
        }
        if await transaction.run(self._queries.adopt, **values):
            return 1
        return await transaction.run(self._queries.chip, id=_chip_id(instance), **values)

    async def _campaign(
        self, transaction: Transaction, nome: str, tipo: str, now: datetime, *, at: datetime | None
    ) -> int:
        return await transaction.run(
            self._queries.campaign,
            nome=nome,
            tipo=tipo,
            corpo="[DEMONSTRAÇÃO] Olá, {nome}. Esta mensagem é fictícia.",
            status="rascunho" if at is None else "agendada",
            agendar_para=at,
            filters=AsJson({"especialidades": list(ESPECIALIDADES[:2]), "quantidade_alvo": 10}),
            now=now,
        )


def _chip_id(instance: str) -> str:
    return str(uuid5(_NAMES, f"chip {instance}"))


def _next_morning(now: datetime, zone: ZoneInfo) -> datetime:
    """Return 10:00 of the next working day."""
    local = now.astimezone(zone)
    days = next(n for n in range(1, 8) if (local + timedelta(days=n)).weekday() < 5)
    return datetime.combine(local.date() + timedelta(days=days), time(10), zone)
