"""Play the operators and the doctors of `make run`: register doctors, create and announce vacancies, write messages,
and take over a conversation.

The demonstration acts only through the API, the commands and the simulated WhatsApp and Telegram, as people do, and
inserts no rows itself. All people are fictitious.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import chain, cycle
from typing import Any, Final
from zoneinfo import ZoneInfo

import httpx2

from app.composition.development.demo import (
    CIDADES,
    FIRST_NUMBER,
    LISTENER,
    MORE_SENDERS,
    SENDER,
    planilha_de_demonstracao,
)
from app.contexts.relatorios.periodos import DO_DIA, Periodo, parte_do_dia
from batuta import Idle
from batuta.kernel import Clock, Json, dataclass
from batuta.loops import Pace, Wakeup

REASON: Final = "demonstração"
HOSPITAL: Final = "Hospital Fictício"
AREAS: Final = ("Pediatria", "Clínica médica", "Ortopedia")
DOCTORS: Final = 30
# Age of the simulated chips. It gives them enough trust to write to doctors first.
IN_USE: Final = timedelta(days=60)
# Number of doctors registered without a speciality. The trigger for first contacts asks these doctors for their
# speciality.
WITHOUT_AREA: Final = 2
SWITCHES: Final = (
    ("on", "external_handoff.enabled"),
    ("off", "pilot_mode"),
    ("on", "discovery_automatico_enabled"),
    ("on", "feedback_automatico_enabled"),
)
# The first requests may fail, because the api starts at the same time.
RETRY: Final = timedelta(seconds=2)
EVERY: Final = timedelta(seconds=30)
SAID_FIRST: Final = (
    "Bom dia! Tem plantão de pediatria essa semana?",
    "Oi, quero falar com uma pessoa da equipe",
    "Quanto estão pagando no noturno?",
    "Consegue um plantão no sábado?",
    "Obrigada!",
)
# Julia's account on Telegram, and the doctors who have Telegram too.
TELEGRAM_ACCOUNT: Final = "julia-telegram"
TELEGRAM_NUMBER: Final = "5511900000999"
ON_TELEGRAM: Final = (28, 29, 27)
Act = Callable[[], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Step:
    """An action of the demonstration, and the pause before the next action."""

    act: Act
    rest: timedelta


def run_command(*words: str, typed: str = "") -> Awaitable[int]:
    """Run a ``batuta`` command as an operator does, and return its exit code. The command reads ``typed`` from standard
    input.
    """

    async def run() -> int:
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "batuta", *words),
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.DEVNULL,
        )
        await process.communicate(typed.encode())
        return process.returncode or 0

    return run()


class Demonstration:
    """Loop that performs the demonstration's actions one after the other."""

    name = "demonstracao"

    def __init__(
        self,
        api: httpx2.AsyncClient,
        simulator: httpx2.AsyncClient,
        telegram: httpx2.AsyncClient,
        clock: Clock,
        zone: ZoneInfo,
        command: Callable[..., Awaitable[int]] = run_command,
    ) -> None:
        self.wakeup = Wakeup()
        self._api = api
        self._simulator = simulator
        self._telegram = telegram
        self._clock = clock
        self._zone = zone
        self._command = command
        self._doctors: list[str] = []
        self._new: list[str] = []  # doctors registered by this start; empty if an earlier start registered them
        self._served: str | None = None  # the conversation that a person handles
        self._shift: str | None = None  # the reserved vacancy whose shift ends soon
        self._account: int | None = None  # the user id of Julia's account on Telegram
        self._people: list[int] = []  # the user ids of doctors on Telegram
        self._count = 0
        self._commands: list[asyncio.Future[int]] = []
        self._steps = self.script()
        self._step = next(self._steps)

    async def tick(self) -> Pace:
        try:
            await self._step.act()
        except httpx2.HTTPStatusError as error:
            if error.response.is_server_error:
                return Idle(self._clock.now() + RETRY)
        except httpx2.TransportError:
            return Idle(self._clock.now() + RETRY)
        rest, self._step = self._step.rest, next(self._steps)
        return Idle(self._clock.now() + rest)

    async def drain(self, grace: timedelta) -> None:
        for each in self._commands:
            each.cancel()
        await self._api.aclose()
        await self._simulator.aclose()
        await self._telegram.aclose()

    def script(self) -> Iterator[Step]:
        """Yield the actions: an opening of about two minutes, then a routine that repeats."""
        opening: Sequence[tuple[Act, float]] = (
            (self.switch, 0),
            (self.register_doctors, 0),
            (self.register_chips, 1),
            (lambda: self.run_job("validar-telefones"), 1),
            (self.announce_new, 3),
            (self.reserve_short_shift, 2),
            (self.post_in_group, 3),
            (self.import_appointments, 4),
            (self.add_telegram_account, 2),
            (self.write_first, 8),
            (self.send_on_telegram, 2),
            (self.write_on_telegram, 2),
            (self.announce_from_group, 8),
            (lambda: self.run_job("executar-discovery-autonomo"), 5),
            (self.start_campaign, 5),
            (self.write_first, 10),
            (self.announce_from_group, 2),
            (self.take_over, 8),
            (self.report, 10),
            (self.write_first, 15),
            (self.hand_back, 20),
            (self.remind, 0),
            (self.end_shifts, 2),
            (self.confirm_shift, 20),
        )
        routine: Sequence[Act] = (
            self.write_first,
            self.remind,
            self.announce_from_group,
            self.post_in_group,
            self.write_on_telegram,
            self.take_over,
            self.remind,
            self.announce_new,
            self.write_first,
            self.hand_back,
            self.remind,
            self.send_on_telegram,
            self.announce_from_group,
            self.reserve_short_shift,
            self.answer_pending,
            self.end_shifts,
            self.confirm_shift,
            self.report,
        )
        first = (Step(act, timedelta(seconds=rest)) for act, rest in opening)
        return chain(first, (Step(act, EVERY) for act in cycle(routine)))

    async def register_doctors(self) -> None:
        doctors: list[Json] = [self._doctor(n) for n in range(DOCTORS)]
        registered = await self._post("/api/v1/medicos", medicos=doctors)
        self._new = [str(each) for each in registered["novos"]]
        self._doctors = self._new or await self._find_known_doctors()

    async def register_chips(self) -> None:
        """Register each instance of the simulated gateway as a chip that has been in use for months."""
        await self.run_job("sincronizar-chips")
        since = f"{self._now() - IN_USE:%Y-%m-%d}"
        for instance in (SENDER, *MORE_SENDERS, LISTENER):
            tipo = "listener" if instance == LISTENER else "julia"
            await self._post(
                f"/api/v1/chips/{instance}", status="active", tipo=tipo, fase="operacao", em_uso_desde=since, motivo=REASON,
            )  # fmt: skip
        await self.run_job("atualizar-trust-scores")

    async def switch(self) -> None:
        """Start the ``batuta switch`` commands that set the demonstration's switches, without waiting for the commands
        to finish.
        """
        self._commands = [
            asyncio.ensure_future(self._command("switch", word, key, "--reason", REASON)) for word, key in SWITCHES
        ]

    async def announce_new(self) -> None:
        """Create a vacancy for one of the next days, and offer it to the best-matching doctors."""
        self._count += 1
        day = self._now() + timedelta(days=2 + self._count % 5)
        vaga = await self._create(AREAS[self._count % len(AREAS)], day, periodo="noturno", valor=1500)
        await self._post(f"/api/v1/vagas/{vaga}/anunciar", melhores=4)

    async def reserve_short_shift(self) -> None:
        """Create two vacancies whose shifts start now and last a minute. Reserve the first for a doctor. The second
        expires without a doctor.
        """
        starts = self._now()
        hours = {"hora_inicio": f"{starts:%H:%M}", "hora_fim": f"{starts + timedelta(minutes=1):%H:%M}"}
        self._shift = await self._create(AREAS[0], starts, valor=900, **hours)
        self._count += 1
        if self._doctors:
            doctor = self._doctors[-self._count % len(self._doctors)]
            await self._post(f"/api/v1/vagas/{self._shift}/reservar", medico=doctor)
        await self._create(AREAS[1], starts, valor=800, **hours)

    async def remind(self) -> None:
        """Run the job that reminds people to confirm or refuse a doctor for the vacancy that they posted. In a
        demonstration, the job sends a reminder after two minutes.
        """
        await self.run_job("processar-handoffs")

    async def end_shifts(self) -> None:
        """Run the hourly job that marks past shifts as awaiting confirmation, without its usual delay of two hours."""
        await self.run_job("processar-confirmacao-plantao?buffer_horas=0")

    async def confirm_shift(self) -> None:
        if self._shift is not None:
            await self._post(f"/api/v1/vagas/{self._shift}/realizada")

    async def post_in_group(self) -> None:
        self._count += 1
        day, value = self._now() + timedelta(days=3 + self._count % 9), 1600 + 50 * (self._count % 8)
        area = AREAS[self._count % len(AREAS)].lower()
        text = f"[SIMULADO] Plantão de {area} no {HOSPITAL}, {day:%d/%m}, 19h às 7h, R$ {value}, PJ"
        await self._say("grupos", instance=LISTENER, text=text)

    async def announce_from_group(self) -> None:
        """Offer doctors a vacancy that was posted in a group. If a doctor accepts, Julia starts a hand-off to the
        person who posted the vacancy.
        """
        found = await self._get("/api/v1/vagas?origem=grupo_whatsapp&status=aberta&limite=100")
        tomorrow = f"{self._now() + timedelta(days=1):%Y-%m-%d}"
        wanted = [each for each in found["vagas"] if each["data"] > tomorrow and each["especialidade"] in AREAS]
        if wanted:
            await self._post(f"/api/v1/vagas/{wanted[-1]['id']}/anunciar", melhores=3)

    async def import_appointments(self) -> None:
        if not self._new:
            return
        sheet = planilha_de_demonstracao(self._now().date())
        answer = await self._api.post("/api/v1/appointments/import", files={"file": ("demonstracao.csv", sheet)})
        answer.raise_for_status()

    async def start_campaign(self) -> None:
        if not self._new:
            return
        made = await self._post(
            "/campanhas", nome_template="Demonstração: primeiro contato", tipo_campanha="discovery",
            corpo="[DEMONSTRAÇÃO] Olá, {nome}. Qual é a sua especialidade? Esta mensagem é fictícia.",
            audience_filters={"clientes_especificos": [*self._new[10:16]], "quantidade_alvo": 6},
        )  # fmt: skip
        await self._post(f"/campanhas/{made['id']}/agendar")

    async def write_first(self) -> None:
        self._count += 1
        text, number = SAID_FIRST[self._count % len(SAID_FIRST)], str(FIRST_NUMBER + 16 + self._count % 12)
        await self._say("mensagens", instance=SENDER, number=number, text=text)

    async def add_telegram_account(self) -> None:
        """Register some doctors with the simulated Telegram. Create Julia's account there and import its session, as an
        operator does.
        """
        self._people = [await self._meet(n) for n in ON_TELEGRAM]
        account = await self._control("contas", nome="Julia", telefone=TELEGRAM_NUMBER)
        self._account = int(account["id"])
        login = self._command("telegram", "login", TELEGRAM_ACCOUNT, "--importar", typed=f"{account['sessao']}\n")
        self._commands.append(asyncio.ensure_future(login))

    async def write_on_telegram(self) -> None:
        self._count += 1
        text, person = SAID_FIRST[self._count % len(SAID_FIRST)], self._people[self._count % len(self._people)]
        await self._control("mensagens", de=person, conta=self._account, texto=text)

    async def send_on_telegram(self) -> None:
        """Wait until the command that adds the account has finished, then send a message from that account."""
        if self._commands:
            await asyncio.wait(self._commands)
        self._count += 1
        doctor = str(FIRST_NUMBER + ON_TELEGRAM[self._count % len(ON_TELEGRAM)])
        text = f"[DEMONSTRAÇÃO] Olá! Esta mensagem fictícia número {self._count} veio pelo Telegram."
        await self._post("/api/v1/telegram/mensagens", quem=doctor, texto=text)

    async def take_over(self) -> None:
        """Take over a conversation that is waiting for a person. If none is waiting, take over the most recent
        conversation.
        """
        found = (await self._get("/api/v1/conversas?limite=50"))["conversas"]
        free = [each for each in found if each["responsavel"] is None]
        waiting = [each for each in free if each["com"] == "human"]
        if free and self._served is None:
            self._served = str((waiting or free)[0]["id"])
            await self._post(f"/api/v1/conversas/{self._served}/assumir", motivo=REASON)

    async def hand_back(self) -> None:
        served, self._served = self._served, None
        if served is not None:
            await self._post(f"/api/v1/conversas/{served}/devolver", motivo=REASON, mensagens="continuar")

    async def answer_pending(self) -> None:
        """Resolve the oldest message that is waiting for a person."""
        for each in (await self._get("/api/v1/pendencias?limite=1"))["pendencias"]:
            await self._post(f"/api/v1/pendencias/{each['id']}/resolver", motivo=REASON)

    async def report(self) -> None:
        """Create the report for the most recently ended part of the day, such as the morning."""
        last = last_period(self._now())
        await self.run_job(f"report-periodo?tipo={last.tipo}&data={last.inicio:%Y-%m-%d}")

    async def run_job(self, endpoint: str) -> None:
        await self._post(f"/jobs/{endpoint}")

    async def _find_known_doctors(self) -> list[str]:
        """Return the ids of doctors whom an earlier run of the demonstration registered."""
        found = await self._get(f"/api/v1/medicos?limite={DOCTORS}")
        return [str(each["medico"]) for each in found["medicos"]]

    async def _create(self, area: str, day: datetime, **more: Json) -> str:
        made = await self._post(
            "/api/v1/vagas", hospital=HOSPITAL, novo_hospital=True, outra=True, cidade="São Paulo", uf="SP",
            especialidade=area, data=f"{day:%Y-%m-%d}", **more,
        )  # fmt: skip
        return str(made["id"])

    def _doctor(self, n: int) -> dict[str, Json]:
        cidade, estado = CIDADES[n % len(CIDADES)]
        return {
            "telefone": str(FIRST_NUMBER + n),
            "primeiro_nome": "Pessoa",
            "sobrenome": f"Fictícia {n:02d}",
            "especialidade": AREAS[n % len(AREAS)] if n < DOCTORS - WITHOUT_AREA else None,
            "cidade": cidade,
            "estado": estado,
        }

    async def _say(self, where: str, **body: Json) -> None:
        (await self._simulator.post(f"/controle/evolution/{where}", json=body)).raise_for_status()

    async def _meet(self, n: int) -> int:
        """Register a doctor with the simulated Telegram, and return the new user id."""
        return int(
            (await self._control("pessoas", nome=f"Pessoa Fictícia {n:02d}", telefone=str(FIRST_NUMBER + n)))["id"]
        )

    async def _control(self, where: str, **body: Json) -> Any:
        return (await self._telegram.post(f"/controle/telegram/{where}", json=body)).raise_for_status().json()

    async def _post(self, path: str, **body: Json) -> Any:
        return (await self._api.post(path, json=body)).raise_for_status().json()

    async def _get(self, path: str) -> Any:
        return (await self._api.get(path)).raise_for_status().json()

    def _now(self) -> datetime:
        return self._clock.now().astimezone(self._zone)


def last_period(now: datetime) -> Periodo:
    """Return the most recently ended part of a day, such as the morning. ``now`` is local time."""
    zone = now.tzinfo
    assert isinstance(zone, ZoneInfo)
    days = (now.date(), now.date() - timedelta(days=1))
    ended = (period for day in days for tipo in DO_DIA if (period := parte_do_dia(tipo, day, zone)).fim <= now)
    return max(ended, key=lambda period: period.fim)
