"""Rows like those of a real installation, for tests of lists, commands and sends: doctors, two trusted chips and two
campaigns.
"""

from datetime import datetime, time, timedelta
from zoneinfo import ZoneInfo

from app.composition.development.demo import FIRST_NUMBER, LISTENER, SENDER
from batuta.kernel.clock import SystemClock
from batuta.kernel.ids import Ids
from batuta.sql import AsJson
from batuta.stores import connect
from batuta.stores.sql.database import Database
from tests.julia.tables import write

ZONE = ZoneInfo("America/Sao_Paulo")
AREAS = ("Clínica médica", "Pediatria", "Ortopedia", "Ginecologia", "Anestesiologia")

DOCTOR = """
    INSERT INTO clientes (id, telefone, primeiro_nome, sobrenome, crm, especialidade, cidade, estado, status_telefone, created_at)
    VALUES (:id, :telefone, 'Pessoa', :sobrenome, :crm, :area, 'São Paulo', 'SP', 'validado', :now)
"""
CHIP = """
    INSERT INTO chips (id, telefone, instance_name, tipo, status, evolution_connected, fase_warmup, warming_started_at,
                       trust_score, trust_level, pode_prospectar, pode_followup, pode_responder, limite_hora, limite_dia,
                       delay_minimo_segundos, created_at, updated_at)
    VALUES (:id, :telefone, :instance, :tipo, 'active', TRUE, 'operacao', :since, 90, 'verde', :sends, :sends, :sends, 30, 100,
            45, :now, :now)
"""
CAMPAIGN = """
    INSERT INTO campanhas (nome_template, tipo_campanha, corpo, status, agendar_para, audience_filters, objetivo, created_by,
                           created_at, updated_at)
    VALUES (:nome, :tipo, 'Olá, {nome}.', :status, :at, :filters, 'teste', 'teste', :now, :now)
"""


async def fill(database: Database, doctors: int, *, now: datetime) -> None:
    """Add doctors and the simulated gateway's two chips. The chips have full trust."""
    ids = Ids(SystemClock())
    for n in range(1, doctors + 1):
        await write(
            database, DOCTOR, id=ids.new(), telefone=str(FIRST_NUMBER + n), sobrenome=f"Fictícia {n:04d}", crm=f"{n:06d}",
            area=AREAS[n % len(AREAS)], now=now,
        )  # fmt: skip
    for instance, telefone, tipo in ((SENDER, "5511900000000", "julia"), (LISTENER, "5511900900000", "listener")):
        await write(
            database, CHIP, id=ids.new(), telefone=telefone, instance=instance, tipo=tipo, sends=tipo == "julia",
            since=now - timedelta(days=60), now=now,
        )  # fmt: skip


async def fill_office(url: str, doctors: int = 20) -> None:
    """Fill a migrated database with doctors, chips, a draft campaign and a campaign scheduled for the next morning."""
    clock = SystemClock()
    database, now = connect(url, clock), clock.now()
    await database.open()
    try:
        await fill(database, doctors, now=now)
        morning = datetime.combine(_next_working_day(now), time(10), ZONE)
        for nome, tipo, status, at in (
            ("Primeiro contato", "discovery", "rascunho", None), ("Oferta", "oferta", "agendada", morning),
        ):  # fmt: skip
            filters = AsJson({"especialidades": list(AREAS[:2]), "quantidade_alvo": 10})
            await write(database, CAMPAIGN, nome=nome, tipo=tipo, status=status, at=at, filters=filters, now=now)
    finally:
        await database.close()


def _next_working_day(now: datetime) -> datetime:
    local = now.astimezone(ZONE)
    return next(day for n in range(1, 8) if (day := local + timedelta(days=n)).weekday() < 5)
