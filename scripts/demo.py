"""``python3 dev.py demo``: play one working day in São Paulo in about a minute, and check its result.

Julia runs in its own process (``office``), next to the simulators of WhatsApp, Telegram and Slack. All use a clock that
jumps from minute to minute. The demonstration acts only through webhooks, the API and commands. In the morning the
process is killed in the middle of a send. At the end an independent check compares the simulator's receipts, the
schedule and the database rows; the exit code is 1 if a promise is broken. All people are fictitious, and nothing leaves
the machine.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerProcess
from typing import Any
from zoneinfo import ZoneInfo

import httpx2
from starlette.applications import Starlette

from app.composition.catalogue import APP
from app.composition.development.demo import LISTENER, SENDER
from app.composition.development.demonstration import IN_USE
from app.composition.development.simulator import SIMULATED
from app.integrations.evolution.client import EVENTS, SECRET_HEADER
from batuta.cli.context import language_here
from batuta.kernel.clock import SystemClock
from batuta.kernel.storage.json import Json
from batuta.processes.address import listen
from batuta.supervise.loop import Again
from batuta.testing import JumpClock
from batuta.texts import Texts
from batuta.web.api import serve
from scripts.day_judge import judge_day
from scripts.office import PLAN, Plan, run
from simulador.comportamento import Comportamento
from simulador.evolution.vida import Receipt
from simulador.main import create_app
from simulador.telegram.api import create_app as create_telegram
from simulador.telegram.mundo import Mundo
from simulador.telegram.mundo import Receipt as TelegramReceipt

ZONE = ZoneInfo("America/Sao_Paulo")
MINUTE = timedelta(minutes=1)
BETWEEN_TRIES = timedelta(seconds=20)
GRACE = timedelta(seconds=2)
ANSWERS_WITHIN = 30.0  # seconds of real time
GROUP = "120363000000000001@g.us"
SPECIALITY = "Pediatria"
PEOPLE = 14
OPTS_OUT, ASKS_FOR_A_PERSON, HAS_A_SHIFT, ON_TELEGRAM = 5, 3, 13, 10
TELEGRAM_QUESTION = "Oi! Tem plantão de pediatria essa semana?"


@dataclass
class World:
    """The simulator, Julia's process and the clock that both use."""

    plan: Plan
    clock: JumpClock
    app: Starlette
    telegram: Mundo
    api: httpx2.AsyncClient
    control: httpx2.AsyncClient
    process: ForkServerProcess | None = None
    pipe: Connection | None = None

    def begin(self) -> None:
        # The fork server imports the application once, so the process that replaces a killed one starts quickly.
        starting = multiprocessing.get_context("forkserver")
        starting.set_forkserver_preload(["scripts.office"])
        self.pipe, theirs = starting.Pipe()
        plan = replace(self.plan, starts=self.clock.now().isoformat())
        self.process = starting.Process(target=run, args=(plan.encode(), theirs), daemon=True)
        self.process.start()
        theirs.close()

    async def order(self, *, works: bool, on_telegram: bool = False) -> None:
        """Set the clock of Julia's process. With ``works``, wait until the process has done all due work. With
        ``on_telegram``, its Telegram accounts are connected during that work.
        """
        assert self.pipe is not None
        self.pipe.send((self.clock.now(), works, on_telegram))
        await asyncio.to_thread(self.pipe.recv)

    async def kill_in_a_send(self) -> bool:
        """Let Julia work, and kill its process after the gateway accepted a message and before the gateway answers.
        Return False if no message was due.
        """
        assert self.pipe is not None
        assert self.process is not None
        receipts = self.app.state.evolution.vida.receipts
        before = len(receipts)
        await self.control.patch("/controle/evolution/", json={"slow_seconds": 5})
        self.pipe.send((self.clock.now(), True, False))
        answer = asyncio.create_task(asyncio.to_thread(self.pipe.recv))
        while len(receipts) == before and not answer.done():  # noqa: ASYNC110 - the simulator has no event for it
            await asyncio.sleep(0.005)
        is_sending = not answer.done()
        if is_sending:
            self.process.kill()
            self.process.join()
        with suppress(EOFError, OSError):
            await answer
        await self.control.delete("/controle/evolution/")
        return is_sending

    async def command(self, *words: str, typed: str = "") -> None:
        """Run a ``batuta`` command as an operator does, on the demonstration's clock. ``typed`` is what the operator
        types into it.
        """
        plan = replace(self.plan, starts=self.clock.now().isoformat())
        process = await asyncio.create_subprocess_exec(
            sys.executable, "-m", "batuta", "--app", "scripts.office:work", *words,
            env={**os.environ, PLAN: json.dumps(plan.encode())},
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip
        said, _ = await process.communicate(typed.encode())
        if process.returncode:
            raise RuntimeError(f"batuta {' '.join(words)}: {said.decode()}")

    async def request(self, path: str, **body: Json) -> Any:
        answer = await self.api.post(path, json=body)
        if answer.is_error:
            raise RuntimeError(f"POST {path}: {answer.status_code} {answer.text}")
        return answer.json()

    async def read(self, path: str) -> Any:
        return (await self.api.get(path)).raise_for_status().json()

    async def deliver(self) -> None:
        """Deliver all of the gateway's webhooks that are due."""
        while isinstance(await self.app.state.evolution.carteiro.tick(), Again):
            pass

    def close(self) -> None:
        if self.process is not None and self.process.is_alive():
            self.process.kill()
            self.process.join()


@asynccontextmanager
async def world_of(folder: str, starts: datetime) -> AsyncIterator[World]:
    listening, beside, port, stop = listen("127.0.0.1", 0), listen("127.0.0.1", 0), _free_port(), asyncio.Event()
    plan = Plan(
        folder=folder,
        port=port,
        simulador=listening.getsockname()[1],
        telegram=beside.getsockname()[1],
        starts=starts.isoformat(),
    )
    clock = JumpClock(starts)
    inside, outside = f"http://127.0.0.1:{port}", f"http://127.0.0.1:{plan.simulador}"
    webhook: Mapping[str, Json] = {
        "enabled": True,
        "url": f"{inside}/webhook/evolution",
        "headers": {SECRET_HEADER: SIMULATED},
        "events": list(EVENTS),
    }
    app = create_app(clock, at_rest=Comportamento(), webhook=webhook, instances=[LISTENER])
    telegram = create_telegram(clock)
    serving = asyncio.gather(serve(app, listening, stop, GRACE), serve(telegram, beside, stop, GRACE))
    async with (
        httpx2.AsyncClient(base_url=inside, trust_env=False, timeout=ANSWERS_WITHIN) as api,
        httpx2.AsyncClient(base_url=outside, trust_env=False, timeout=ANSWERS_WITHIN) as control,
    ):
        world = World(plan, clock, app, telegram.state.telegram.mundo, api, control)
        try:
            yield world
        finally:
            world.close()
            stop.set()
            await serving


@dataclass
class Day:
    """The script of the day: what people and operators do, in chronological order. It prints the timeline."""

    world: World
    starts: datetime
    ends: datetime
    texts: Texts
    doctors: dict[str, str] = field(default_factory=dict)  # maps the id of a doctor to the phone number
    names: dict[str, str] = field(default_factory=dict)  # maps the phone number of a doctor to the name
    vagas: dict[str, str] = field(default_factory=dict)  # maps the name of a vacancy in the script to its id
    poster: str | None = None  # phone number of the person who posted the vacancy in the group
    receipts: int = 0
    notes: int = 0

    async def play(self) -> None:
        script = self.script()
        await self.pass_minute([self.set_up])
        while (now := self.world.clock.now().astimezone(ZONE)) < self.ends:
            await self.pass_minute([act for at, act in script if at == (now.hour, now.minute)])

    async def pass_minute(self, acts: list[Callable[[], Awaitable[None]]]) -> None:
        world = self.world
        if acts:
            # The jobs of this minute run first, because a command takes a few seconds of the clock.
            await world.order(works=True)
            await self.show()
            for act in acts:
                await act()
        if world.app.state.evolution.carteiro.is_due():
            await world.order(works=False)
            await world.deliver()
        await world.order(works=True)
        await self.show()
        minute = world.clock.now().replace(second=0, microsecond=0)
        world.clock.jump_to(minute + MINUTE)

    def script(self) -> list[tuple[tuple[int, int], Callable[[], Awaitable[None]]]]:
        return [
            ((0, 20), self.create_shifts_of_today),
            ((6, 30), lambda: self.writes(12, "Bom dia! Tem plantão de pediatria essa semana?")),
            ((8, 30), self.announce),
            ((9, 15), lambda: self.writes(4, "Quanto paga?")),
            ((9, 30), lambda: self.writes(0, "Aceito!")),
            ((9, 32), lambda: self.writes(1, "Aceito o plantão")),
            ((9, 34), lambda: self.writes(2, "Não posso nesse dia, obrigada")),
            ((9, 36), lambda: self.writes(3, "Quero falar com uma pessoa, por favor")),
            ((9, 40), lambda: self.writes(OPTS_OUT, "Não quero mais receber mensagens")),
            ((9, 45), self.schedule_campaign),
            ((10, 2), self.kill),
            ((10, 30), self.take_over),
            ((11, 30), self.hand_back),
            ((11, 35), self.post_in_group),
            ((13, 30), self.talk_on_telegram),
            ((14, 40), lambda: self.writes(8, "Aceito!")),
            ((15, 0), lambda: self.operate("pause", "all", "--reason", "demonstração")),
            ((15, 30), lambda: self.operate("resume", "all", "--reason", "demonstração")),
            ((16, 0), self.confirm_shift),
            ((18, 0), lambda: self.writes_as_poster("Confirmado, ela vai cobrir")),
            ((22, 15), lambda: self.writes(11, "Consigo plantão amanhã cedo?")),
        ]

    def say(self, key: str, **facts: object) -> None:
        print(f"{self.world.clock.now().astimezone(ZONE):%H:%M}  {self.texts(f'demo.{key}', **facts)}", flush=True)

    async def operate(self, *words: str) -> None:
        await self.world.command(*words)
        self.say("command", command=" ".join(("batuta", *words)))

    async def set_up(self) -> None:
        medicos = [
            {
                "telefone": number_of(n),
                "primeiro_nome": "Pessoa",
                "sobrenome": f"Fictícia {n:02d}",
                "especialidade": SPECIALITY,
                "cidade": "São Paulo",
                "estado": "SP",
            }
            for n in range(PEOPLE)
        ]
        registered = await self.world.request("/api/v1/medicos", medicos=medicos)
        self.doctors = {id: each["telefone"] for id, each in zip(registered["novos"], medicos, strict=True)}
        self.names = {each["telefone"]: f"{each['primeiro_nome']} {each['sobrenome']}" for each in medicos}
        self.say("doctors", count=len(self.doctors))
        await self.world.request("/jobs/sincronizar-chips")
        since = f"{self.starts - IN_USE:%Y-%m-%d}"
        for instance, tipo in ((SENDER, "julia"), (LISTENER, "listener")):
            await self.world.request(
                f"/api/v1/chips/{instance}", status="active", tipo=tipo, fase="operacao", em_uso_desde=since,
                motivo="demonstração",
            )  # fmt: skip
        self.say("chips", count=2)
        await self.operate("switch", "on", "external_handoff.enabled", "--reason", "demonstração")

    async def create(self, name: str, day: int, periodo: str, **more: Json) -> None:
        made = await self.world.request(
            "/api/v1/vagas", hospital="Hospital Fictício", novo_hospital=True, cidade="São Paulo", uf="SP",
            especialidade=SPECIALITY, data=f"{self.starts + timedelta(days=day):%Y-%m-%d}", periodo=periodo, **more,
        )  # fmt: skip
        self.vagas[name] = made["id"]
        self.say("created", day=self.texts.day(self.starts + timedelta(days=day)), periodo=made["periodo"])

    async def create_shifts_of_today(self) -> None:
        """Create two shifts for this morning. One has a doctor and is confirmed in the afternoon. The other has no
        doctor and expires.
        """
        await self.create("hoje", 0, "diurno", hora_inicio="07:00", hora_fim="13:00", valor=900)
        doctor = list(self.doctors)[HAS_A_SHIFT]
        await self.world.request(f"/api/v1/vagas/{self.vagas['hoje']}/reservar", medico=doctor)
        await self.create("sem_medico", 0, "noturno", valor=1100)

    async def announce(self) -> None:
        await self.create("oferta", 2, "noturno", valor=1500)
        chosen = list(self.doctors)[:6]
        await self.world.request(f"/api/v1/vagas/{self.vagas['oferta']}/anunciar", medicos=chosen)
        self.say("announced", count=len(chosen))

    async def confirm_shift(self) -> None:
        await self.world.request(f"/api/v1/vagas/{self.vagas['hoje']}/realizada")
        self.say("confirmed")

    async def writes(self, n: int, text: str) -> None:
        await self.writes_from(number_of(n), text)

    async def writes_as_poster(self, text: str) -> None:
        if self.poster is not None:
            await self.writes_from(self.poster, text)

    async def writes_from(self, number: str, text: str) -> None:
        answer = await self.world.control.post(
            "/controle/evolution/mensagens", json={"instance": SENDER, "number": number, "text": text}
        )
        answer.raise_for_status()
        self.say("received", name=self.names[number], text=text)

    async def talk_on_telegram(self) -> None:
        """Add an account with a command, and let a doctor write on Telegram. Julia answers the doctor, and an operator
        writes too.
        """
        world, mundo, number = self.world, self.world.telegram, number_of(ON_TELEGRAM)
        person = mundo.add_person(self.names[number], telefone=number)
        account = mundo.add_person("Julia", telefone="5511900000999")
        words = ("telegram", "login", "julia-telegram", "--importar")
        await world.command(*words, typed=f"{mundo.open_session(account)}\n")
        self.say("command", command=" ".join(("batuta", *words)))
        await world.order(works=True, on_telegram=True)
        mundo.says(person, account, TELEGRAM_QUESTION)
        self.say("telegram_received", name=self.names[number], text=TELEGRAM_QUESTION)
        await world.request("/api/v1/telegram/mensagens", quem=number, texto="[DEMONSTRAÇÃO] Olá pelo Telegram!")
        await world.order(works=True, on_telegram=True)
        for receipt in mundo.receipts:
            self.say("telegram_sent", name=self.names[number], text=receipt.texto.splitlines()[0][:90])
        await world.request("/api/v1/telegram/contas/julia-telegram/pausar")
        self.say("telegram_paused")

    async def post_in_group(self) -> None:
        day = f"{self.starts + timedelta(days=4):%d/%m}"
        text = f"[DEMONSTRAÇÃO] Plantão de pediatria no Hospital Fictício, {day}, 19h às 7h, R$ 1.800, PJ"
        body = {"instance": LISTENER, "text": text, "group": GROUP}
        (await self.world.control.post("/controle/evolution/grupos", json=body)).raise_for_status()
        self.say("group", text=text)

    async def conversation(self) -> str:
        """The id of the conversation with the doctor who asked to talk to a human."""
        doctor = list(self.doctors)[ASKS_FOR_A_PERSON]
        rows = (await self.world.read("/api/v1/conversas?limite=100"))["conversas"]
        return str(next(each["id"] for each in rows if each["medico"] == doctor))

    async def take_over(self) -> None:
        id = await self.conversation()
        await self.world.request(f"/api/v1/conversas/{id}/assumir", motivo="demonstração")
        self.say("taken", name=self.names[number_of(ASKS_FOR_A_PERSON)])

    async def hand_back(self) -> None:
        id = await self.conversation()
        await self.world.request(f"/api/v1/conversas/{id}/devolver", motivo="demonstração", mensagens="continuar")
        self.say("returned", name=self.names[number_of(ASKS_FOR_A_PERSON)])

    async def schedule_campaign(self) -> None:
        made = await self.world.request(
            "/campanhas", nome_template="Demonstração", tipo_campanha="discovery",
            corpo="[DEMONSTRAÇÃO] Olá, {nome}. Esta mensagem é fictícia.",
            audience_filters={"clientes_especificos": list(self.doctors)[6:12], "quantidade_alvo": 6},
        )  # fmt: skip
        await self.world.request(f"/campanhas/{made['id']}/agendar")
        self.say("campaign")

    async def kill(self) -> None:
        while not await self.world.kill_in_a_send():
            self.world.clock.jump_to(self.world.clock.now() + BETWEEN_TRIES)
        self.say("killed")
        # Meanwhile the lease of the killed call expires, so the next process need not wait for it in real time.
        self.world.clock.jump_to(self.world.clock.now() + BETWEEN_TRIES)
        self.world.begin()
        await self.world.order(works=False)

    async def show(self) -> None:
        """Print the messages that were sent since the last call, and the messages that reached Slack."""
        evolution = self.world.app.state.evolution
        for receipt in list(evolution.vida.receipts)[self.receipts :]:
            first = receipt.text.splitlines()[0]
            if receipt.number not in self.names:  # only doctors and this person receive messages
                self.poster, self.names[receipt.number] = receipt.number, self.texts("demo.poster")
            self.say("sent", name=self.names[receipt.number], text=first[:90])
        self.receipts = len(evolution.vida.receipts)
        notes = self.world.app.state.slack.recebidos.all()
        for note in notes[self.notes :]:
            self.say("slack", text=str(note["payload"]["text"]).splitlines()[0])
        self.notes = len(notes)


async def main(first: int = 0, last: int = 24) -> int:
    """Play the day from the hour ``first`` to the hour ``last``, and return the exit code."""
    began = time.monotonic()
    midnight = _working_day(SystemClock().now().astimezone(ZONE))
    starts, ends = midnight + timedelta(hours=first), midnight + timedelta(hours=last)
    texts = Texts(language_here(os.environ), [APP / "texts"])
    with tempfile.TemporaryDirectory(prefix="batuta-demo-", dir=_memory()) as folder:
        async with world_of(folder, starts) as world:
            day = Day(world, starts, ends, texts)
            print(texts("demo.begins", day=texts.day(starts)), flush=True)
            world.begin()
            await day.play()
            receipts = [*world.app.state.evolution.vida.receipts, *map(telegram_receipt, world.telegram.receipts)]
        print()
        wrong, facts = await judge_day(world.plan, (starts, ends), receipts, number_of(OPTS_OUT))
        print("\n".join(texts(f"demo.fact.{key}", **values) for key, values in facts))
        print("\n".join(wrong) or texts("demo.promises_kept"))
    print(texts("demo.ends", hours=last - first, seconds=round(time.monotonic() - began)))
    return 1 if wrong else 0


def telegram_receipt(receipt: TelegramReceipt) -> Receipt:
    """Convert a Telegram receipt to the format of a gateway receipt."""
    chat = receipt.chat
    return Receipt(
        n=receipt.n, at=receipt.at, id=f"tg:{chat}:{receipt.id}", instance="telegram", number=chat, jid=chat,
        text=receipt.texto, answer="answered",
    )  # fmt: skip


def _working_day(now: datetime) -> datetime:
    """Return the start of the next Tuesday, Wednesday or Thursday. On these days every window opens."""
    days = next(n for n in range(1, 8) if (now + timedelta(days=n)).weekday() in (1, 2, 3))
    return (now + timedelta(days=days)).replace(hour=0, minute=0, second=0, microsecond=0)


def number_of(n: int) -> str:
    """Return a fictitious doctor's phone number, which is not assigned to any real person."""
    return f"55119000{1000 + n:05d}"


def _memory() -> str | None:
    """Return a folder in memory if the machine has one. Commits are fast there, and a killed process loses no data."""
    folder = "/dev/shm"  # noqa: S108 - the folder inside it has a random name
    return folder if os.access(folder, os.W_OK) else None


def _free_port() -> int:
    with listen("127.0.0.1", 0) as listening:
        port: int = listening.getsockname()[1]
        return port


def hours(arguments: Sequence[str]) -> tuple[int, int]:
    """Parse the first and the last hour of the demonstration from the command line."""
    parser = argparse.ArgumentParser(prog="dev.py demo", description=__doc__)
    parser.add_argument("first", nargs="?", type=int, default=0, metavar="FIRST", help="the hour at which it begins")
    parser.add_argument("last", nargs="?", type=int, default=24, metavar="LAST", help="the hour at which it ends")
    chosen = parser.parse_args(arguments)
    if not 0 <= chosen.first < chosen.last <= 24:
        parser.error(f"{chosen.first} to {chosen.last} is not a part of a day: give two hours such as 8 12")
    return chosen.first, chosen.last


if __name__ == "__main__":
    sys.exit(asyncio.run(main(*hours(sys.argv[1:]))))
