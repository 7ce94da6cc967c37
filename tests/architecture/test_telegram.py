"""Every request to Telegram has a deadline. Application code makes requests through ``chamar``, which cancels a client
that does not respond. Inside a Telegram client, each call to the Telegram library or the database goes through the
client's ``Prazo``, the time limit of one request.
"""

import ast
import inspect
from pathlib import Path

import pytest

from app.contexts.telegram.porta import Linha, Telegram

APP = Path(__file__).parents[2] / "app"
CONTEXT = APP / "contexts" / "telegram"
ADAPTERS = sorted(
    each
    for name in ("telegram", "telethon")
    for each in (APP / "integrations" / name).glob("*.py")
    if each.stem != "__init__"
)
# The attributes of a client class that reach the network or the database.
OUTSIDE = {"_client", "client", "_sessoes", "sessoes", "_entidades", "entidades"}
METHODS = {
    name
    for port in (Linha, Telegram)
    for name, member in vars(port).items()
    if inspect.iscoroutinefunction(member) and not name.startswith("_")
}


def unbounded(source: str) -> list[int]:
    """Return the lines that send a request to Telegram outside a function that is passed to ``chamar``."""
    tree = ast.parse(source)
    bounded = {
        id(call)
        for each in ast.walk(tree)
        if isinstance(each, ast.Lambda)
        for call in ast.walk(each)
        if isinstance(call, ast.Call) and any(keyword.arg == "limit" for keyword in call.keywords)
    }
    return [
        call.lineno
        for call in ast.walk(tree)
        if isinstance(call, ast.Call)
        and isinstance(call.func, ast.Attribute)
        and call.func.attr in METHODS
        and isinstance(call.func.value, ast.Name | ast.Attribute)
        and (getattr(call.func.value, "id", None) or getattr(call.func.value, "attr", "")) in {"linha", "telegram"}
        and id(call) not in bounded
    ]


def awaited_directly(source: str) -> list[int]:
    """Return the lines that await a call to a client or a store directly, instead of passing the call to ``Prazo``."""
    return [
        each.lineno
        for each in ast.walk(ast.parse(source))
        if isinstance(each, ast.Await) and isinstance(each.value, ast.Call) and _names(each.value.func) & OUTSIDE
    ]


def _names(callee: ast.expr) -> set[str]:
    """Return the names in an expression: self, _client and connect for ``self._client.connect``."""
    if isinstance(callee, ast.Attribute):
        return {callee.attr, *_names(callee.value)}
    return {callee.id} if isinstance(callee, ast.Name) else set()


@pytest.mark.parametrize("file", ADAPTERS, ids=lambda file: f"{file.parent.name}/{file.name}")
def test_adapter_hands_each_call_to_its_deadline(file: Path) -> None:
    assert awaited_directly(file.read_text(encoding="utf-8")) == [], "await prazo.run(…) or prazo.store(…) instead"


@pytest.mark.parametrize(
    "line",
    [
        "await self._client(request)",
        "await self._client.catch_up()",
        "await client.connect()",
        "found = await self._sessoes.take(conta)",
        "return await self._entidades.find(conta, destino)",
    ],
)
def test_rule_finds_a_call_of_an_adapter_without_a_deadline(line: str) -> None:
    assert awaited_directly(f"async def f(self, client):\n    {line}") == [2]


def test_rule_accepts_a_call_with_a_deadline() -> None:
    assert awaited_directly("async def f(self, prazo):\n    await prazo.run(self._client.connect(), 'connect')") == []


@pytest.mark.parametrize("file", sorted(CONTEXT.glob("*.py")), ids=lambda file: file.name)
def test_request_has_a_deadline(file: Path) -> None:
    assert unbounded(file.read_text(encoding="utf-8")) == [], "call the port through chamar(lambda limit: …, limit, …)"


@pytest.mark.parametrize(
    "line",
    [
        "await linha.send_text(peer, text, random_id=1, limit=limit)",
        "await self.linha.probe(limit=limit)",
        "await self.telegram.connect(conta, marca=None, limit=limit)",
        "chamar(lambda limit: linha.probe(), limit)",
    ],
)
def test_rule_finds_a_request_without_a_deadline(line: str) -> None:
    assert unbounded(f"async def f(self, linha):\n    {line}") == [2]
