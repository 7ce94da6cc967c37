"""Waiting for whichever comes first, and leaving nothing behind."""

import asyncio
from collections.abc import Awaitable
from typing import Any


async def first_of(*awaitables: Awaitable[Any]) -> int:
    """Wait for the one that ends first, cancel the others, and say which it was. Its error is raised."""
    tasks = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
    finally:
        await ended(*tasks)
    winner = next(index for index, task in enumerate(tasks) if task in done)
    await tasks[winner]
    return winner


async def ended(*tasks: asyncio.Future[Any]) -> None:
    """Cancel them and wait until each has taken notice."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
