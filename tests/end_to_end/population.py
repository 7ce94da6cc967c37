"""Julia in one process on a clock that jumps, together with simulated people: doctors, people who post vacancies in
groups, and operators.

The simulated people act only through the API, the simulated gateway and its webhooks. All of them are fictitious.
"""

import asyncio
from collections.abc import AsyncIterator, Mapping, MutableMapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import httpx2
from pydantic import SecretStr
from starlette.applications import Starlette
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from app.composition.development.demo import LISTENER, SENDER
from app.composition.jobs import Profile
from app.composition.julia import Julia
from app.contexts.handoffs.model import SWITCH as HANDOFFS
from app.contexts.mensagens.interruptores import SAFE_MODE
from app.integrations.evolution.client import EVENTS, SECRET_HEADER
from app.main import build
from app.settings import Settings
from app.web.api import create_app
from batuta.kernel.storage.json import Json, loads
from batuta.processes.address import listen
from batuta.supervise.loop import Again
from batuta.testing import JumpClock, Simulation
from batuta.web.api import serve
from simulador.comportamento import Comportamento
from simulador.evolution.gateway import KEY
from simulador.main import create_app as create_world

GRACE = timedelta(seconds=2)
BRIEFING = Path(__file__).parents[2] / "examples" / "briefing"
SECRET = "segredo-de-teste"
GROUP = "120363000000000001@g.us"
SPECIALITY = "Pediatria"
HOSPITAL = "Hospital Fictício"
# Reply of a doctor to the message of Julia that has just arrived. The last digit of the doctor's number chooses the
# reply. Doctors with other digits do not reply.
REPLIES: Mapping[int, str] = {
    1: "Aceito!",
    2: "Não posso nesse dia, obrigada",
    3: "Quanto paga?",
    4: "Não quero mais receber mensagens",
    5: "Quero falar com uma pessoa, por favor",
    6: "Aceito o plantão",
}
EVERY_NUMBER = ""
# A number that is not on WhatsApp.
UNKNOWN = "5511900001008"
AT_NIGHT = {7: "Consigo plantão amanhã cedo?"}
# Replies of people who post vacancies in groups: every second one confirms.
POSTERS = {0: "Sim, confirmado"}
# Julia answers within this time. A message that arrives later is on Julia's initiative.
ANSWERED_WITHIN = timedelta(minutes=30)
LONG_AGO, FOREVER = datetime.min.replace(tzinfo=UTC) + timedelta(days=1), datetime.max.replace(tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Call:
    """One call to a job's endpoint: the request that the endpoint received and its response."""

    key: str
    path: str
    start: datetime
    end: datetime
    answer: Mapping[str, Any]


class CallRecorder:
    """ASGI application that records every call to a job's endpoint, together with the response."""

    def __init__(self, app: ASGIApp, clock: JumpClock) -> None:
        self.calls: list[Call] = []
        self._app = app
        self._clock = clock

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        key = dict(scope.get("headers", ())).get(b"idempotency-key", b"").decode()
        if scope["type"] != "http" or not key or not scope["path"].startswith("/jobs/"):
            await self._app(scope, receive, send)
            return
        body, start = bytearray(), self._clock.now()

        async def keep(message: MutableMapping[str, Any] | Message) -> None:
            body.extend(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, keep)
        answer = loads(bytes(body))
        assert isinstance(answer, dict)
        end = self._clock.now().astimezone(UTC)
        self.calls.append(Call(key, scope["path"], start.astimezone(UTC), end, answer))


@dataclass
class Office:
    """Julia, the simulated gateway and the clock that both use."""

    julia: Julia
    clock: JumpClock
    world: Starlette
    recorder: CallRecorder
    simulation: Simulation
    api: httpx2.AsyncClient
    control: httpx2.AsyncClient

    async def step(self, instant: datetime) -> None:
        """Move the clock, deliver the gateway's due webhooks, and do all work that is due."""
        self.clock.jump_to(instant)
        await self.settle()

    async def settle(self) -> None:
        await self.deliver()
        await self.simulation.settle()

    async def deliver(self) -> None:
        while isinstance(await self.world.state.evolution.carteiro.tick(), Again):
            pass

    async def request(self, path: str, **body: Json) -> Any:
        answer = await self.api.post(path, json=body)
        assert not answer.is_error, (path, answer.status_code, answer.text)
        return answer.json()

    async def read(self, path: str) -> Any:
        return (await self.api.get(path)).raise_for_status().json()

    async def receipts(self, after: int = 0) -> list[dict[str, Any]]:
        """Return the messages that the gateway actually sent, according to its own record."""
        found: list[dict[str, Any]] = []
        while page := (await self.control.get(f"/controle/evolution/recibos?depois={after}")).json():
            found += page
            after = page[-1]["n"]
        return found

    async def write(self, number: str, text: str) -> None:
        body = {"instance": SENDER, "number": number, "text": text}
        (await self.control.post("/controle/evolution/mensagens", json=body)).raise_for_status()

    async def write_in_group(self, text: str) -> None:
        body = {"instance": LISTENER, "text": text, "group": GROUP}
        (await self.control.post("/controle/evolution/grupos", json=body)).raise_for_status()


@asynccontextmanager
async def office_of(database_url: str, profile: Profile, zone: str, starts: datetime) -> AsyncIterator[Office]:
    clock, stop = JumpClock(starts), asyncio.Event()
    inside, outside = listen("127.0.0.1", 0), listen("127.0.0.1", 0)
    port, url = inside.getsockname()[1], f"http://127.0.0.1:{outside.getsockname()[1]}"
    settings = Settings(
        database_url=SecretStr(database_url),
        timezone=zone,
        schedule_profile=profile,
        evolution_api_url=f"{url}/evolution",
        evolution_api_key=SecretStr(KEY),
        webhook_secret=SecretStr(SECRET),
        slack_webhook_url=SecretStr(f"{url}/slack/equipe"),
        pilot_mode=False,
        discovery_automatico_enabled=True,
        oferta_automatica_enabled=True,
        reativacao_automatica_enabled=True,
        feedback_automatico_enabled=True,
        recuperacao_automatica_enabled=True,
        briefing_dir=str(BRIEFING),
        port=port,
    )
    webhook: Mapping[str, Json] = {
        "enabled": True,
        "url": f"{settings.api_url}/webhook/evolution",
        "headers": {SECRET_HEADER: SECRET},
        "events": list(EVENTS),
    }
    world = create_world(
        clock, at_rest=Comportamento(unknown_numbers=(UNKNOWN,)), webhook=webhook, instances=[LISTENER]
    )
    julia = build(settings, clock=clock)
    async with (
        julia.work,
        httpx2.AsyncClient(base_url=settings.api_url, trust_env=False, timeout=60) as api,
        httpx2.AsyncClient(base_url=url, trust_env=False, timeout=60) as control,
    ):
        recorder = CallRecorder(create_app(julia), clock)
        serving = [serve(world, outside, stop, GRACE), serve(recorder, inside, stop, GRACE)]
        tasks = [asyncio.create_task(each) for each in serving]
        try:
            async with Simulation(julia.work, clock) as simulation:
                yield Office(julia, clock, world, recorder, simulation, api, control)
        finally:
            await world.state.evolution.carteiro.drain(GRACE)
            stop.set()
            await asyncio.gather(*tasks)


@dataclass
class Population:
    """Doctors who answer, refuse, opt out or stay silent, and operators who create and confirm shifts.

    ``forbidden`` lists the numbers that Julia must not contact on its own initiative, each with the start and the end
    of the ban.
    """

    office: Office
    count: int = 40
    doctors: dict[str, str] = field(default_factory=dict)  # maps a phone number to the id of the doctor
    forbidden: list[tuple[str, datetime, datetime]] = field(default_factory=list)
    # maps a phone number to the time of the person's last message
    wrote: dict[str, datetime] = field(default_factory=dict)
    paused_at: datetime | None = None
    # maps a conversation to the phone number and the instant of the take-over
    taken: dict[str, tuple[str, datetime]] = field(default_factory=dict)

    @property
    def local(self) -> datetime:
        return self.office.clock.now().astimezone(self.office.julia.work.zone)

    async def settle_in(self) -> None:
        """Register the doctors, a quarter of them without a speciality, and put two chips into service. One doctor has
        a rest period, in which Julia may not contact them.
        """
        medicos: list[Json] = [
            {
                "telefone": f"55119000{1000 + n:05d}",
                "primeiro_nome": "Pessoa",
                "sobrenome": f"Fictícia {n:02d}",
                "especialidade": SPECIALITY if n < 0.75 * self.count else None,
                "cidade": "São Paulo",
                "estado": "SP",
            }
            for n in range(self.count)
        ]
        julia = self.office.julia
        await julia.work.switches.set(HANDOFFS.key, True, by="teste", reason="teste", now=julia.work.clock.now())
        registered = await self.office.request("/api/v1/medicos", medicos=medicos)
        phones = [str(each["telefone"]) for each in medicos if isinstance(each, dict)]
        self.doctors = dict(zip(phones, registered["novos"], strict=True))
        until = self.local + timedelta(hours=16)
        rests = f"/api/v1/medicos/{self.doctors[phones[0]]}/estado"
        await self.office.request(rests, motivo="teste", descanso_ate=f"{until:%Y-%m-%dT%H:%M:%S%z}")
        self.forbidden.append((phones[0], self.office.clock.now(), until.astimezone(UTC)))
        await self.office.request("/jobs/sincronizar-chips")
        since = f"{self.local - timedelta(days=90):%Y-%m-%d}"
        for instance, tipo in ((SENDER, "julia"), (LISTENER, "listener")):
            await self.office.request(
                f"/api/v1/chips/{instance}",
                status="active",
                tipo=tipo,
                fase="operacao",
                em_uso_desde=since,
                motivo="teste",
            )

    async def act(self) -> None:
        """Perform what the simulated people do at this hour. The test calls this method once for every hour of the
        day.
        """
        now = self.local
        if not 7 <= now.hour <= 22:
            return
        await self.reply(AT_NIGHT if now.hour == 22 else REPLIES)
        if now.weekday() < 5:
            match now.hour:
                case 8:
                    await self.create_vacancies()
                case 9:
                    await self.post_in_group()
                case 12:
                    await self.take_and_return()
                case 13 if now.weekday() == 4:
                    await self.schedule_campaign()
                case 15:
                    await self.confirm_shifts()
                case 16:
                    await self.pause()
                case 17:
                    await self.resume()

    async def reply(self, words: Mapping[int, str] = REPLIES) -> None:
        """Reply as each doctor and each poster to new messages from Julia. Julia's answers to earlier replies get no
        reply.
        """
        answered, opted_out = 0, []
        for receipt in await self.office.receipts():
            number, at = receipt["number"], datetime.fromisoformat(receipt["at"])
            text = words.get(int(number[-1])) if number in self.doctors else POSTERS.get(int(number[-1]) % 2)
            before = self.wrote.get(number, LONG_AGO)
            if text is None or at <= before + ANSWERED_WITHIN:
                continue
            self.wrote[number] = self.office.clock.now()
            await self.office.write(number, text)
            answered += 1
            if number in self.doctors and text == REPLIES[4]:
                opted_out.append(number)
        if answered:
            await self.office.settle()
        self.forbidden += [(number, self.office.clock.now(), FOREVER) for number in opted_out]

    async def create_vacancies(self) -> None:
        """Create three vacancies: one for today that is reserved for a doctor, one that an operator announces, and one
        that Julia may offer to doctors.
        """
        ids = list(self.doctors.values())
        mine = await self._vacancy(0, "diurno", hora_inicio="09:00", hora_fim="11:00")
        await self.office.request(f"/api/v1/vagas/{mine}/reservar", medico=ids[9])
        announced = await self._vacancy(3, "noturno", valor=1500)
        await self.office.request(f"/api/v1/vagas/{announced}/anunciar", melhores=8)
        await self._vacancy(2, "tarde", valor=1200)
        await self.office.settle()

    async def post_in_group(self) -> None:
        day = f"{self.local + timedelta(days=4):%d/%m}"
        await self.office.write_in_group(f"Plantão de pediatria no {HOSPITAL}, {day}, 19h às 7h, R$ 1.800, PJ")
        await self.office.write_in_group("Preciso de plantonista de pediatria, 19h às 7h, R$ 1.500, chama no pv")
        await self.office.write_in_group("bom dia grupo")
        await self.office.settle()

    async def take_and_return(self) -> None:
        """Act as an operator: take over the conversation of a silent doctor, and hand the conversation that was taken
        over on the previous day back to Julia.
        """
        talks = (await self.office.read("/api/v1/conversas?limite=200"))["conversas"]
        for id, (phone, since) in self.taken.items():
            self.forbidden.append((phone, since, self.office.clock.now()))
            await self.office.request(f"/api/v1/conversas/{id}/devolver", motivo="teste", mensagens="cancelar")
        self.taken.clear()
        phones = {id: phone for phone, id in self.doctors.items()}
        silent = [talk for talk in talks if phones.get(talk["medico"], "-")[-1] in "089" and talk["com"] != "human"]
        for talk in silent[self.local.day % max(len(silent), 1) :][:1]:
            await self.office.request(f"/api/v1/conversas/{talk['id']}/assumir", motivo="teste")
            self.taken[talk["id"]] = (phones[talk["medico"]], self.office.clock.now())

    async def schedule_campaign(self) -> None:
        made = await self.office.request(
            "/campanhas",
            nome_template=f"Teste {self.local:%d/%m}",
            tipo_campanha="discovery",
            corpo="Olá, {nome}. Esta mensagem é um teste.",
            audience_filters={"quantidade_alvo": 12},
        )
        await self.office.api.post(f"/campanhas/{made['id']}/agendar")

    async def confirm_shifts(self) -> None:
        found = (await self.office.read("/api/v1/vagas?status=pendente_confirmacao&limite=50"))["vagas"]
        for vaga in found:
            await self.office.request(f"/api/v1/vagas/{vaga['id']}/realizada")

    async def pause(self) -> None:
        """Pause all messages that Julia initiates, as an operator would."""
        await self._switch(True)
        self.paused_at = self.office.clock.now()

    async def resume(self) -> None:
        if self.paused_at is not None:
            self.forbidden.append((EVERY_NUMBER, self.paused_at, self.office.clock.now()))
            await self._switch(False)

    async def _switch(self, on: bool) -> None:
        work = self.office.julia.work
        await work.switches.set(SAFE_MODE.key, on, by="teste", reason="teste", now=work.clock.now())

    async def _vacancy(self, days: int, periodo: str, **more: Json) -> str:
        made = await self.office.request(
            "/api/v1/vagas",
            hospital=HOSPITAL,
            novo_hospital=True,
            cidade="São Paulo",
            uf="SP",
            especialidade=SPECIALITY,
            data=f"{self.local + timedelta(days=days):%Y-%m-%d}",
            periodo=periodo,
            outra=True,
            **more,
        )
        return str(made["id"])
