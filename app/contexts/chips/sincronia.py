"""The gateway's instances and our chips: what the one's list means for the others. Nothing is decided here from what is missing.

A chip whose instance is not open is disconnected, and nothing else: its status is the pool's, and a bad line must not empty the
pool. A number stays the chip it was, whatever its instance is called: a banned number or a listener does not begin anew under
another name.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from app.contexts.chips.service import IN_USE
from app.contexts.comum.telefone import chave
from app.contexts.comum.whatsapp import Conexao, Instancia, Unavailable
from batuta.reasons import define

OTHER_NUMBER = define("outro_numero", "{instance} is paired with another number than the chip's: it is held back")
SAME_NUMBER = define("mesmo_numero", "{instance} has the number of {other}: one of the two is too many")
LEFT_OUT = define("fora_da_lista", "the list left {instance} out, and it is there")
NOT_LISTED = define("nao_listada", "{instance} is not listed and cannot be asked ({why})")

OUT_OF_SERVICE: Final = frozenset({"banned", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conhecido:
    """A chip as we know it. ``left``: what it was before it became pending."""

    id: str
    instance: str
    status: str
    telefone: str | None = None
    left: str | None = None

    @property
    def returns_to(self) -> str:
        """What a pending chip becomes when its phone is paired: what it was, or else a beginner."""
        return self.left if self.left in IN_USE else "warming"


@dataclass(frozen=True, slots=True)
class Nova:
    """An instance nobody has a chip for."""

    instance: Instancia


@dataclass(frozen=True, slots=True)
class Vista:
    chip: Conhecido
    connected: bool
    telefone: str | None = None


@dataclass(frozen=True, slots=True)
class Renomeada:
    """The same number under another instance."""

    chip: Conhecido
    instance: str


@dataclass(frozen=True, slots=True)
class Volta:
    """A pending chip that is paired now."""

    chip: Conhecido


@dataclass(frozen=True, slots=True)
class Cortada:
    """WhatsApp said why it was cut off."""

    chip: Conhecido
    code: int


@dataclass(frozen=True, slots=True)
class Sumida:
    """The gateway itself says that it knows no such instance."""

    chip: Conhecido


Mudanca: TypeAlias = Nova | Vista | Renomeada | Volta | Cortada | Sumida


@dataclass(slots=True)
class Plano:
    """``doubts``: what a person should look at; nothing was done about it."""

    changes: list[Mudanca] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def find_unlisted(chips: Iterable[Conhecido], instances: Sequence[Instancia]) -> list[Conhecido]:
    """Chips in service that the list does not show, neither by name nor by number: each has to be asked for."""
    names = {each.name for each in instances}
    numbers = {chave(each.telefone) for each in instances if each.telefone}
    return [
        chip
        for chip in chips
        if chip.status not in OUT_OF_SERVICE and chip.instance not in names and _number(chip) not in numbers
    ]


def plan(
    chips: Sequence[Conhecido], instances: Sequence[Instancia], asked: Mapping[str, Conexao | Unavailable]
) -> Plano:
    """``asked``: what the gateway says about each chip that its list did not show."""
    made = Plano()
    by_name = {chip.instance: chip for chip in chips}
    by_number = {number: chip for chip in chips if (number := _number(chip)) is not None}
    listed = {each.name for each in instances}
    for each in instances:
        owner = None if each.telefone is None else by_number.get(chave(each.telefone))
        chip = by_name.get(each.name)
        if chip is None:
            _add_unknown(made, each, owner, is_elsewhere=owner is not None and owner.instance in listed)
        elif each.telefone and chip.telefone and chave(chip.telefone) != chave(each.telefone):
            made.doubts.append(OTHER_NUMBER(instance=each.name))
            made.changes.append(Vista(chip, connected=False))
        else:
            _add_known(made, chip, each, None if owner is not None and owner is not chip else each.telefone)
    for instance, answer in asked.items():
        _missing(made, by_name[instance], answer)
    return made


def _add_unknown(made: Plano, instance: Instancia, owner: Conhecido | None, *, is_elsewhere: bool) -> None:
    if owner is None:
        made.changes.append(Nova(instance))
    elif is_elsewhere:
        made.doubts.append(SAME_NUMBER(instance=instance.name, other=owner.instance))
    else:
        made.changes.append(Renomeada(owner, instance.name))
        _add_known(made, owner, instance, None)


def _add_known(made: Plano, chip: Conhecido, instance: Instancia, telefone: str | None) -> None:
    is_open = instance.state is Conexao.OPEN
    made.changes.append(Vista(chip, is_open, telefone))
    if is_open and chip.status == "pending":
        made.changes.append(Volta(chip))
    elif not is_open and instance.code is not None:
        made.changes.append(Cortada(chip, instance.code))


def _missing(made: Plano, chip: Conhecido, answer: Conexao | Unavailable) -> None:
    match answer:
        case Conexao():
            made.doubts.append(LEFT_OUT(instance=chip.instance))
            made.changes.append(Vista(chip, answer is Conexao.OPEN))
        case Unavailable(is_nobody=True):
            made.changes.append(Sumida(chip))
        case Unavailable(why=why):
            made.doubts.append(NOT_LISTED(instance=chip.instance, why=why))


def _number(chip: Conhecido) -> str | None:
    return None if chip.telefone is None else chave(chip.telefone)
