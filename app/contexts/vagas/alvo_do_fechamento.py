"""Decide to which open vacancies a closing notice refers. Clear matches are closed; an operator decides about unclear
ones.
"""

from collections.abc import Iterable, Sequence
from datetime import date

from app.contexts.leitura_grupos.api import Fechamento
from batuta.kernel import dataclass

MOST = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class VagaAberta:
    """A vacancy, open or in review, that a message in the same group as the closing notice offered.

    ``citavel`` is the messenger's id of the message with the offer. A field that the offer does not state is None.
    """

    id: str
    hospital_id: str | None
    especialidade_id: str | None
    data: date | None
    periodo_id: int | None
    citavel: str
    autor: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Alvo:
    """A vacancy that a closing notice declares taken. A field that the notice does not state is None."""

    hospital_id: str | None = None
    data: date | None = None
    periodo_id: int | None = None
    especialidade_id: str | None = None

    @property
    def is_whole(self) -> bool:
        return None not in (self.hospital_id, self.data, self.periodo_id)

    @property
    def is_empty(self) -> bool:
        return self == Alvo()

    def fits(self, aberta: VagaAberta) -> bool:
        return (
            self.hospital_id in (None, aberta.hospital_id)
            and self.data in (None, aberta.data)
            and self.periodo_id in (None, aberta.periodo_id)
            and self.especialidade_id in (None, aberta.especialidade_id)
        )


@dataclass(frozen=True, slots=True)
class DecisaoDoFechamento:
    """The decision about a closing notice. ``fecha`` has the ids of the vacancies to close, and ``como`` the rule that
    found them. If an operator must decide, ``duvida`` has the ids of the possible vacancies, and ``motivo`` the reason.
    """

    fecha: tuple[str, ...] = ()
    como: str | None = None
    duvida: tuple[str, ...] = ()
    motivo: str | None = None


NADA = DecisaoDoFechamento()


def decidir(
    fechamento: Fechamento,
    alvos: Sequence[Alvo],
    abertas: Sequence[VagaAberta],
    *,
    citada: str | None,
    autor: str | None,
) -> DecisaoDoFechamento:
    """Match a closing notice with its group's open vacancies.

    ``alvos`` has the vacancies that the notice names. ``citada`` is the message to which the notice replies. ``autor``
    is the author of the notice.
    """
    answered = [each for each in abertas if citada is not None and each.citavel == citada]
    if answered:
        meant = _citada(fechamento, alvos, answered, autor)
    elif fechamento.certo:
        meant = _nomeadas(alvos, abertas, autor)
    else:
        return NADA
    if meant.fecha and not fechamento.claro:
        return DecisaoDoFechamento(duvida=(*meant.fecha, *meant.duvida)[:MOST], motivo="sentido_incerto")
    return meant


def _nomeadas(alvos: Sequence[Alvo], abertas: Sequence[VagaAberta], autor: str | None) -> DecisaoDoFechamento:
    """Decide to close the vacancies that a closing notice names, if its author also offered them. If another author
    offered a matching vacancy, leave the decision to an operator.
    """
    own = {each.id for each in abertas if _is_own(each, autor)}
    closed: list[str] = []
    doubted: list[str] = []
    of_others: list[str] = []
    for alvo in alvos:
        found = _ids(each for each in abertas if alvo.fits(each) and (not alvo.is_empty or each.id in own))
        is_clear = alvo.is_whole and len(found) == 1
        (doubted if not is_clear else closed if found[0] in own else of_others).extend(found)
    left = tuple(dict.fromkeys(id for id in (*of_others, *doubted) if id not in closed))[:MOST]
    unclear = "varias_vagas" if any(each.is_whole for each in alvos) else "nao_diz_qual"
    why = None if not left else "dito_por_outro" if of_others else unclear
    return DecisaoDoFechamento(tuple(dict.fromkeys(closed)), "mesma_vaga" if closed else None, left, why)


def _citada(
    fechamento: Fechamento, alvos: Sequence[Alvo], answered: Sequence[VagaAberta], autor: str | None
) -> DecisaoDoFechamento:
    """Decide to close the vacancies in the offer to which a closing notice replies. If another author wrote the offer,
    or if it is unclear which of its vacancies match the notice, leave the decision to an operator.
    """
    meant = _ids(each for each in answered if any(alvo.fits(each) for alvo in alvos))
    everything = _ids(answered)[:MOST]
    if not meant:
        return DecisaoDoFechamento(duvida=everything, motivo="diz_outra_coisa")
    if len(meant) > 1 and not fechamento.todas and not any(each.is_whole for each in alvos):
        return DecisaoDoFechamento(duvida=meant[:MOST], motivo="varias_vagas")
    # Any member of a group can quote an offer, so only the author of the offer can close it.
    if not any(_is_own(each, autor) for each in answered):
        return DecisaoDoFechamento(duvida=meant[:MOST], motivo="dito_por_outro")
    return DecisaoDoFechamento(fecha=meant, como="citada")


def _is_own(aberta: VagaAberta, autor: str | None) -> bool:
    return autor is not None and aberta.autor == autor


def _ids(abertas: Iterable[VagaAberta]) -> tuple[str, ...]:
    """Return the ids of vacancies without repetitions. Several messages in a group may offer the same vacancy."""
    return tuple(dict.fromkeys(each.id for each in abertas))
