"""``/painel/telegram``: the accounts, the loops in their worker, and the actions pause and resume."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from app.composition.julia import Julia
from app.contexts.telegram.contas import EstadoDaConta
from app.contexts.telegram.saude import ContaVista
from batuta.extension import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Screen, Tone, Visit
from batuta.health import Severity

PATH: Final = "/telegram"
ACCOUNT: Final = Field(name="conta", kind=FieldKind.HIDDEN, required=True, longest=200)


def screens(julia: Callable[[], Julia]) -> Sequence[Screen]:
    async def read(visit: Visit) -> Mapping[str, object]:
        return await _read(julia(), visit)

    return [Screen(path=PATH, title="tela.telegram.titulo", template="julia/telegram.html.j2", read=read)]


def actions(julia: Callable[[], Julia]) -> Sequence[Action]:
    def change(name: str, state: EstadoDaConta) -> Action:
        async def preview(call: ActionCall) -> Preview:
            conta = call.values["conta"]
            await julia().telegram.contas.conta(conta)
            return Preview(says=f"tela.telegram.previa_{name}", facts={"conta": conta})

        async def perform(call: ActionCall) -> ActionResult:
            conta = call.values["conta"]
            await julia().telegram.servico.mudar(conta, state, by=call.caller)
            facts = {"conta": conta, "estado": call.texts(f"estado.telegram_conta.{state}")}
            return ActionResult(says="tela.telegram.mudada", facts=facts)

        return Action(
            name=f"telegram.{name}",
            label=f"tela.telegram.{name}",
            fields=[ACCOUNT],
            preview=preview,
            perform=perform,
            command=lambda values: ["telegram", name, values["conta"]],
            audits=True,
        )

    return [change("pausar", EstadoDaConta.PAUSADA), change("retomar", EstadoDaConta.ATIVA)]


async def _read(julia: Julia, visit: Visit) -> Mapping[str, object]:
    contas = await julia.telegram.health.contas()
    document = await julia.telegram.health.documento()
    loops: Mapping[str, bool] = document["worker"]["loops"]
    return {"accounts": [_account(each, visit) for each in contas], "loops": loops}


def _account(conta: ContaVista, visit: Visit) -> dict[str, Any]:
    problem = conta.problem(visit.now)
    facts = {"conta": conta.nome, "until": conta.espera_ate}
    texts = visit.texts
    is_paused = conta.estado == EstadoDaConta.PAUSADA
    if problem is None:
        tone = Tone.HELD if is_paused else Tone.OK
    else:
        tone = Tone.FAILING if problem[1] is Severity.ERROR else Tone.DEGRADED
    return {
        "name": conta.nome,
        "state": texts(f"estado.telegram_conta.{conta.estado}"),
        "tone": tone,
        "finding": None if problem is None else texts(f"finding.{problem[0]}.message", **facts),
        "step": None if problem is None else texts(f"finding.{problem[0]}.next", **facts),
        "error": conta.erro and texts.reason(conta.erro),
        "connected": conta.conectada,
        "answered": conta.respondeu_em,
        "queued": conta.na_fila,
        "doubts": conta.em_duvida,
        "sent": conta.enviadas_hora,
        "reconnections": conta.reconexoes,
        "is_paused": is_paused,
        "is_active": conta.estado == EstadoDaConta.ATIVA,
    }
