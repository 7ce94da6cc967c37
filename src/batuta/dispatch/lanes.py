"""Lanes: how many runs of a category go on at a time. Live work has places of its own and never waits for batch."""

import asyncio
from collections.abc import Mapping
from types import MappingProxyType

PLACES = 4
RESERVED = MappingProxyType({"critico": 8})


class Lanes:
    def __init__(self, places: int = PLACES, reserved: Mapping[str, int] = RESERVED) -> None:
        self._places = places
        self._reserved = dict(reserved)
        self._lanes: dict[str, asyncio.Semaphore] = {}

    def of(self, categoria: str) -> asyncio.Semaphore:
        if categoria not in self._lanes:
            self._lanes[categoria] = asyncio.Semaphore(self._reserved.get(categoria, self._places))
        return self._lanes[categoria]
