"""Compute the changes to our chips that follow from the gateway's list of instances.

If a chip's instance is missing from the list, the gateway is asked about that instance before the chip is changed. A
chip whose instance is not open is only marked as disconnected, so that an outage takes no chip out of service. If an
instance is renamed, the phone number stays with the same chip, so that a banned number stays banned.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import field
from typing import Final, TypeAlias

from app.contexts.chips.service import IN_USE
from app.contexts.comum.telefone import chave
from app.contexts.comum.whatsapp import EstadoDaConexao, Instancia, Unavailable
from batuta.kernel import dataclass
from batuta.reasons import define

OTHER_NUMBER = define("outro_numero", "{instance} is paired with a number other than the chip's: it does not send")
SAME_NUMBER = define("mesmo_numero", "{instance} and {other} have the same number: remove one of the two instances")
LEFT_OUT = define("fora_da_lista", "the list omits {instance}, but the gateway has it")
NOT_LISTED = define("nao_listada", "{instance} is not listed, and the gateway does not answer about it ({why})")

OUT_OF_SERVICE: Final = frozenset({"banned", "cancelled"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Conhecido:
    """A chip in our database. ``left`` is the status that the chip had before it became pending."""

    id: str
    instance: str
    status: str
    telefone: str | None = None
    left: str | None = None

    @property
    def returns_to(self) -> str:
        """The status that a pending chip gets when its phone is paired again: the previous status if chips with that
        status are in use, otherwise ``warming``.
        """
        return self.left if self.left in IN_USE else "warming"


@dataclass(frozen=True, slots=True)
class Nova:
    """A gateway instance for which no chip is stored."""

    instance: Instancia


@dataclass(frozen=True, slots=True)
class Vista:
    chip: Conhecido
    connected: bool
    telefone: str | None = None


@dataclass(frozen=True, slots=True)
class Renomeada:
    """A chip whose phone number has moved to another gateway instance."""

    chip: Conhecido
    instance: str


@dataclass(frozen=True, slots=True)
class Volta:
    """A pending chip whose phone was paired again."""

    chip: Conhecido


@dataclass(frozen=True, slots=True)
class Cortada:
    """A chip whose connection WhatsApp closed. ``code`` is the reason that WhatsApp gave."""

    chip: Conhecido
    code: int


@dataclass(frozen=True, slots=True)
class Sumida:
    """A chip whose gateway instance no longer exists."""

    chip: Conhecido


Mudanca: TypeAlias = Nova | Vista | Renomeada | Volta | Cortada | Sumida


@dataclass(slots=True)
class Plano:
    """The changes to apply to the chips. ``doubts`` describes contradictions between the chips and the gateway. Julia
    changes no chip because of a contradiction; an operator must resolve it.
    """

    changes: list[Mudanca] = field(default_factory=list)
    doubts: list[str] = field(default_factory=list)


def find_unlisted(chips: Iterable[Conhecido], instances: Sequence[Instancia]) -> list[Conhecido]:
    """Return the chips in service whose name and number are both missing from the gateway's list. The caller queries
    the gateway about each of them.
    """
    names = {each.name for each in instances}
    numbers = {chave(each.telefone) for each in instances if each.telefone}
    return [
        chip
        for chip in chips
        if chip.status not in OUT_OF_SERVICE and chip.instance not in names and _number(chip) not in numbers
    ]


def plan(
    chips: Sequence[Conhecido], instances: Sequence[Instancia], asked: Mapping[str, EstadoDaConexao | Unavailable]
) -> Plano:
    """Compare the chips with the gateway's instances, and return the changes. ``asked`` has the gateway's answer about
    each chip that is missing from its list.
    """
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
    is_open = instance.state is EstadoDaConexao.OPEN
    made.changes.append(Vista(chip, is_open, telefone))
    if is_open and chip.status == "pending":
        made.changes.append(Volta(chip))
    elif not is_open and instance.code is not None:
        made.changes.append(Cortada(chip, instance.code))


def _missing(made: Plano, chip: Conhecido, answer: EstadoDaConexao | Unavailable) -> None:
    match answer:
        case EstadoDaConexao():
            made.doubts.append(LEFT_OUT(instance=chip.instance))
            made.changes.append(Vista(chip, answer is EstadoDaConexao.OPEN))
        case Unavailable(not_found=True):
            made.changes.append(Sumida(chip))
        case Unavailable(why=why):
            made.doubts.append(NOT_LISTED(instance=chip.instance, why=why))


def _number(chip: Conhecido) -> str | None:
    return None if chip.telefone is None else chave(chip.telefone)
