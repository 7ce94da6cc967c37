"""Jobs that read operators' documents: the briefing every hour, the templates every morning."""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final, Protocol

from app.contexts.diretrizes.leitura import Invalido, ler_briefing, ler_template
from app.contexts.diretrizes.service import Aplicado, Diretrizes, Fonte, FonteIndisponivel, Igual, Rejeitado, Resultado
from batuta import Done, Failed, Outcome, Partial, Skipped
from batuta.jobs import JobCall, JobHandler
from batuta.kernel import Json
from batuta.reasons import define, reason_of_error

BRIEFING: Final = "briefing"
PRIORITIES: Final = "vagas_prioritarias"
NOT_TEXT = define("documento_ilegivel", "the document is not text in UTF-8: save it again as plain Markdown")
NO_DOCUMENT = define("documento_ausente", "{onde} has no document {documento}: `examples/briefing` has an example")
REJECTED = define("documento_invalido", "{documento} was ignored: {motivo}; correct it, then run this job again")


class Urgentes(Protocol):
    """The result of marking the vacancies that the briefing names as urgent: how many vacancies are urgent, how many
    changed, and a warning for each line of the briefing that was not understood.
    """

    @property
    def total(self) -> int: ...
    @property
    def mudaram(self) -> int: ...
    @property
    def avisos(self) -> Sequence[str]: ...


class Urgencias(Protocol):
    async def marcar(self, itens: Sequence[Mapping[str, Any]]) -> Urgentes:
        """Mark as urgent the vacancies that the briefing names, and remove the mark from all others."""
        ...


class DirectiveJobs:
    def __init__(self, diretrizes: Diretrizes, fonte: Fonte, onde: str, urgencias: Urgencias | None = None) -> None:
        """Create the jobs that read operators' documents. ``onde`` describes the documents' source to operators, such
        as the path of a folder. If ``urgencias`` is None, no vacancy becomes urgent.
        """
        self._diretrizes = diretrizes
        self._urgencias = urgencias
        self._fonte = fonte
        self._onde = onde

    @property
    def handlers(self) -> Mapping[str, JobHandler]:
        return {"sincronizar-briefing": self.sincronizar_briefing, "sync-templates": self.sincronizar_templates}

    async def sincronizar_briefing(self, call: JobCall) -> Outcome:
        """Apply the newest briefing if it has changed. Then mark as urgent the vacancies that the active briefing
        names.
        """
        try:
            document = await self._fonte.briefing()
        except FonteIndisponivel as error:
            return Failed(reason_of_error(error))
        if document is None:
            return Skipped(NO_DOCUMENT(onde=self._onde, documento=BRIEFING))
        result = await self._diretrizes.aplicar(
            BRIEFING, document, self._fonte.origem, ler_briefing, Invalido(NOT_TEXT())
        )
        return _outcome([result], await self._urgent())

    async def sincronizar_templates(self, call: JobCall) -> Outcome:
        """Apply the newest template of each campaign type, if it has changed. An invalid template does not affect other
        templates.
        """
        try:
            found = await self._fonte.templates()
        except FonteIndisponivel as error:
            return Failed(reason_of_error(error))
        if not found:
            return Skipped(NO_DOCUMENT(onde=self._onde, documento="template"))
        results = [
            await self._diretrizes.aplicar(
                f"template_{tipo}", document, self._fonte.origem, partial(ler_template, tipo), Invalido(NOT_TEXT())
            )
            for tipo, document in sorted(found.items())
        ]
        return _outcome(results)

    async def _urgent(self) -> dict[str, Json]:
        """Mark as urgent the vacancies that the active briefing names, and return the counts."""
        if self._urgencias is None:
            return {}
        named = [row["conteudo"] for row in await self._diretrizes.ativas() if row["tipo"] == PRIORITIES]
        done = await self._urgencias.marcar([item for content in named for item in content["itens"]])
        warnings: list[Json] = [str(each) for each in done.avisos]
        return {"vagas_urgentes": {"total": done.total, "mudaram": done.mudaram, "avisos": warnings}}


def _outcome(results: Sequence[Resultado], more: Mapping[str, Json] | None = None) -> Outcome:
    applied = [each for each in results if isinstance(each, Aplicado)]
    rejected = [each for each in results if isinstance(each, Rejeitado)]
    result: dict[str, Json] = {
        "changed": bool(applied),
        "documentos": [{"documento": each.documento, "hash": each.hash, **_details(each)} for each in results],
        **(more or {}),
    }
    if rejected:
        first = rejected[0]
        reason = REJECTED(documento=first.documento, motivo=first.motivo)
        return Partial(reason, items=len(applied), result=result)
    return Done(items=len(applied), result=result)


def _details(result: Resultado) -> dict[str, Json]:
    match result:
        case Aplicado(mudou=changed, avisos=warnings):
            return {"resultado": "aplicado", "diretrizes": list(changed), "avisos": [str(each) for each in warnings]}
        case Igual():
            return {"resultado": "igual"}
        case Rejeitado(motivo=why):
            return {"resultado": "invalido", "motivo": str(why)}
