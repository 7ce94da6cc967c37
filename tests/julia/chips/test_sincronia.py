"""Comparison of the known chips (WhatsApp numbers) with the gateway's list of connected instances: which chips are new,
renamed, disconnected or back.
"""

import pytest

from app.contexts.chips.sincronia import (
    Conhecido,
    Cortada,
    Nova,
    Renomeada,
    Sumida,
    Vista,
    Volta,
    find_unlisted,
    plan,
)
from app.contexts.comum.whatsapp import EstadoDaConexao, Instancia, Unavailable

ONE, OTHER = "5511900000001", "5511900000002"


def chip(instance: str = "um", **facts: str | None) -> Conhecido:
    return Conhecido(**{"id": f"id-{instance}", "instance": instance, "status": "active", "telefone": ONE, **facts})  # type: ignore[arg-type]


def listed(
    name: str = "um", state: EstadoDaConexao = EstadoDaConexao.OPEN, telefone: str | None = ONE, code: int | None = None
) -> Instancia:
    return Instancia(name=name, state=state, telefone=telefone, code=code)


@pytest.mark.parametrize("state", [EstadoDaConexao.CLOSE, EstadoDaConexao.CONNECTING])
@pytest.mark.parametrize("status", ["active", "warming", "ready", "degraded", "paused"])
def test_closed_line_disconnects_and_keeps_the_status(state: EstadoDaConexao, status: str) -> None:
    known = chip(status=status)
    made = plan([known], [listed(state=state, telefone=None)], {})
    assert (made.changes, made.doubts) == ([Vista(known, connected=False)], [])


def test_line_that_opens_again_connects_and_keeps_the_status() -> None:
    known = chip()
    assert plan([known], [listed()], {}).changes == [Vista(known, connected=True, telefone=ONE)]


@pytest.mark.parametrize(
    ("left", "returns"), [("active", "active"), ("ready", "ready"), (None, "warming"), ("paused", "warming")]
)
def test_paired_pending_chip_returns_to_its_status_or_to_warming(left: str | None, returns: str) -> None:
    known = chip(status="pending", left=left)
    assert plan([known], [listed()], {}).changes[1:] == [Volta(known)]
    assert known.returns_to == returns


@pytest.mark.parametrize("status", ["banned", "cancelled", "paused", "provisioned"])
def test_connection_does_not_reactivate_a_chip_taken_out_by_an_operator(status: str) -> None:
    known = chip(status=status)
    assert plan([known], [listed()], {}).changes == [Vista(known, connected=True, telefone=ONE)]


def test_unknown_instance_is_new() -> None:
    new = listed("novo", telefone=OTHER)
    assert plan([chip()], [listed(), new], {}).changes[-1] == Nova(new)


def test_known_number_under_another_name_keeps_its_chip() -> None:
    banned = chip("velho", status="banned")
    made = plan([banned], [listed("novo", telefone="551100000001"), listed("novo-2")], {})
    assert Renomeada(banned, "novo-2") in made.changes
    assert not any(isinstance(each, Nova) and each.instance.name == "novo-2" for each in made.changes)
    assert not any(isinstance(each, Volta) for each in made.changes)


def test_one_number_in_two_instances_needs_an_operator() -> None:
    made = plan([chip()], [listed(), listed("dois")], {})
    assert not any(isinstance(each, Nova | Renomeada) for each in made.changes)
    assert made.doubts == ["dois and um have the same number: remove one of the two instances"]


def test_instance_with_another_number_is_no_longer_the_chip() -> None:
    known = chip()
    made = plan([known], [listed(telefone=OTHER)], {})
    assert made.changes == [Vista(known, connected=False)]
    assert "a number other than" in made.doubts[0]


def test_number_with_and_without_the_ninth_digit_is_one() -> None:
    known = chip(telefone="5511987654321")
    made = plan([known], [listed(telefone="551187654321")], {})
    assert (made.changes[0], made.doubts) == (Vista(known, connected=True, telefone="551187654321"), [])


def test_disconnection_code_is_passed_on_only_while_disconnected() -> None:
    known = chip()
    shut = plan([known], [listed(state=EstadoDaConexao.CLOSE, telefone=None, code=403)], {})
    assert shut.changes[1:] == [Cortada(known, 403)]
    assert plan([known], [listed(code=403)], {}).changes == [Vista(known, connected=True, telefone=ONE)]


def test_unlisted_chip_is_queried_and_only_a_404_disconnects_it() -> None:
    gone, there, silent = chip("sumido"), chip("presente", telefone=OTHER), chip("mudo", telefone=None)
    known, instances = [gone, there, silent], [listed("novo", telefone="5511900000009")]
    assert find_unlisted(known, instances) == known
    asked: dict[str, EstadoDaConexao | Unavailable] = {
        "sumido": Unavailable("HTTP 404", permanent=True, not_found=True),
        "presente": EstadoDaConexao.OPEN,
        "mudo": Unavailable("HTTP 401", permanent=True),
    }
    made = plan(known, instances, asked)
    assert made.changes[1:] == [Sumida(gone), Vista(there, connected=True)]
    assert made.doubts == [
        "the list omits presente, but the gateway has it",
        "mudo is not listed, and the gateway does not answer about it (HTTP 401)",
    ]


def test_chip_out_of_service_is_not_queried() -> None:
    assert (
        find_unlisted(
            [chip(status="banned"), chip("dois", status="cancelled", telefone=OTHER)], [listed("x", telefone=None)]
        )
        == []
    )
