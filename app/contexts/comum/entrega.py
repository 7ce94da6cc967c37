"""The result of a request that delivers a notice or a report to another service."""

from typing import TypeAlias

from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True)
class Entregue:
    """Result: the destination accepted the delivery."""


@dataclass(frozen=True, slots=True)
class Recusado:
    """Result: nothing was delivered. The destination refused the request, or the request was not sent."""

    why: str


@dataclass(frozen=True, slots=True)
class Incerto:
    """Result: the request got no response, so the delivery may or may not have arrived."""

    why: str


Entrega: TypeAlias = Entregue | Recusado | Incerto
