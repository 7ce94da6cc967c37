"""Telegram loses responses, forgets random ids and crashes. A sender that retries with the same random_id neither
duplicates nor loses a message.
"""

import asyncio
import random
from collections import Counter
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from app.composition.telegram.port import LateRing
from app.contexts.telegram.porta import AlreadySent, Enviadas, Linha, Peer, Sent, TipoDeChat
from app.contexts.telegram.sessoes import Sessoes
from app.integrations.telegram.simulado import LinhaSimulada, TelegramSimulado
from batuta.kernel import Ids, SystemClock
from batuta.sql import Database
from batuta.stores import connect
from tests.faults.figures import LONG, Figures
from tests.faults.tally import Tally
from tests.faults.telegram_harness import Server
from tests.julia.tables import write
from tests.julia.telegram.ambiente import EntidadesEmMemoria
from tests.servers import free_port
from tests.stored import opened

ACCOUNTS = 10
ACCOUNT = "INSERT INTO telegram_contas (id, nome, created_at, updated_at) VALUES (:id, :nome, :now, :now)"
LIMIT = timedelta(seconds=10)


@dataclass
class Account:
    id: str
    peer: Peer
    line: Linha | None = None


async def test_lost_answers_and_a_killed_server_double_and_lose_no_message(julia_url: str, tmp_path: Path) -> None:
    messages, kills = (20_000, 40) if LONG else (200, 3)
    figures = Figures(
        "T39",
        "Telegram",
        f"{ACCOUNTS} accounts send {messages} messages; 30 % of the server's answers are lost; the server is killed, and half"
        " of the time it forgets each message's `random_id`",
    )
    server, chance = Server(free_port(), tmp_path / "journal"), random.Random(20261117)
    await server.start()
    try:
        async with opened(connect(julia_url, SystemClock())) as database:
            sender = Sender(server, database)
            accounts = [await sender.account(n) for n in range(ACCOUNTS)]
            sending = asyncio.gather(
                *(sender.send_all(each, n, messages // ACCOUNTS) for n, each in enumerate(accounts))
            )
            killing = asyncio.create_task(storm(server, chance, kills))
            await asyncio.gather(sending, killing)
            for each in accounts:
                if each.line is not None:
                    await each.line.close(limit=LIMIT)
        counted = Counter(each["random_id"] for each in await server.receipts())
    finally:
        await server.kill()
        await server.client.aclose()
    lost, doubled = messages - len(counted), sum(each - 1 for each in counted.values())
    figures.record_items(
        Tally(items=messages, lost=lost, doubled=doubled, effects=counted.total(), in_vain=sender.unknown),
        f"kills: {server.killed - 1}; sends without a known answer: {sender.unknown}; repeated sends: {sender.repeated}",
    )
    assert (lost, doubled) == (0, 0)


async def storm(server: Server, chance: random.Random, kills: int) -> None:
    await server.behave(lost_answers=0.3)
    for n in range(kills):
        await asyncio.sleep(chance.uniform(0.5, 1.5))
        await server.kill()
        await server.start()
        await server.behave(lost_answers=0.3, forgets_random_ids=n % 2 == 0)


class Sender:
    """Sends each message with its random_id until it is certain that the message was sent."""

    def __init__(self, server: Server, database: Database) -> None:
        self._server = server
        self._database = database
        self._clock = SystemClock()
        self._ids = Ids(self._clock)
        self._sessoes = Sessoes(database, LateRing(("synthetic",)), self._clock, "test")
        self._telegram = TelegramSimulado(f"{server.url}/telegram", self._sessoes, EntidadesEmMemoria(), self._clock)
        self.unknown = self.repeated = 0

    async def account(self, n: int) -> Account:
        made = await self._server.add("contas", nome=f"Conta {n}", telefone=f"55119000000{n:02d}")
        await self._server.add("pessoas", nome=f"Pessoa {n}", username=f"pessoa{n}")
        id = str(self._ids.new())
        await write(self._database, ACCOUNT, id=id, nome=f"conta-{n}", now=self._clock.now())
        await self._sessoes.store(id, made["sessao"])
        line = await self._connect(id)
        found = await line.resolve(f"@pessoa{n}", limit=LIMIT)
        return Account(id, getattr(found, "peer", Peer(TipoDeChat.PESSOA, 0)), line)

    async def send_all(self, account: Account, n: int, count: int) -> None:
        for number in range(count):
            await self._send(account, random_id=(n + 1) * 1_000_000 + number)

    async def _send(self, account: Account, random_id: int) -> None:
        texto, since = f"mensagem {random_id}", self._clock.now()
        is_in_doubt = False
        while True:
            if account.line is None:
                account.line = await self._connect(account.id)
            if is_in_doubt:
                # The server may have forgotten the random_id, so only the history proves that the message is absent.
                sent = await account.line.list_sent(account.peer, since=since, limit=LIMIT)
                if not isinstance(sent, Enviadas) or not sent.is_complete:
                    await self._drop(account)
                    continue
                if any(each.texto == texto for each in sent.mensagens):
                    return
                self.repeated += 1
            result = await account.line.send_text(account.peer, texto, random_id=random_id, limit=LIMIT)
            if isinstance(result, Sent | AlreadySent):
                return
            is_in_doubt = True
            self.unknown += 1
            await self._drop(account)

    async def _connect(self, id: str) -> Linha:
        async with asyncio.timeout(120):
            while True:
                line = await self._telegram.connect(id, marca=None, limit=LIMIT)
                if isinstance(line, LinhaSimulada):
                    return line
                await asyncio.sleep(0.1)

    async def _drop(self, account: Account) -> None:
        if account.line is not None:
            await account.line.close(limit=LIMIT)
        account.line = None
