"""Entry point for reading group messages: turns a message into a ``Leitura``."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import date, datetime
from zoneinfo import ZoneInfo

from app.contexts.leitura_grupos.blocos.layout import BLOCOS, Bloco, escrito
from app.contexts.leitura_grupos.blocos.oracoes import em_oracoes
from app.contexts.leitura_grupos.juizo.assunto import Assunto, indicios
from app.contexts.leitura_grupos.juizo.confianca import com_confianca
from app.contexts.leitura_grupos.juizo.evidencia import Evidencia, inexplicadas
from app.contexts.leitura_grupos.juizo.fechamentos import tomadas
from app.contexts.leitura_grupos.juizo.intencao import julgar
from app.contexts.leitura_grupos.juizo.sinais import Sinal, contagem, pedidos, sinais
from app.contexts.leitura_grupos.marcas.folha import Folha, folha
from app.contexts.leitura_grupos.montagem.montar import Montagem, montar
from app.contexts.leitura_grupos.montagem.ocupadas import riscadas
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario
from app.contexts.leitura_grupos.tipos import Categoria, Leitura

SAO_PAULO = ZoneInfo("America/Sao_Paulo")


def ler(
    texto: str,
    *,
    enviado_em: datetime,
    grupo: str | None = None,
    regiao: str | None = None,
    vocabulario: Vocabulario | None = None,
) -> Leitura:
    """Read a group message and return its category and its vacancies. Relative dates such as "amanhã" (tomorrow) are
    counted from the day of ``enviado_em`` in São Paulo. ``enviado_em`` must have a time zone.

    ``regiao`` is the group's town and state, such as "Salvador/BA".
    """
    return _lida(texto, enviado_em, regiao or grupo, vocabulario or Vocabulario.padrao(), Assunto.padrao())[0]


def evidencias(
    texto: str,
    *,
    enviado_em: datetime,
    regiao: str | None,
    vocabulario: Vocabulario,
    assunto: Assunto,
    blocos: Sequence[Bloco] = BLOCOS,
) -> tuple[Leitura, list[tuple[float, ...]]]:
    """Read a group message. Return the result, and the features from which each vacancy's confidence is computed.

    ``blocos`` has the rules that rewrite layouts such as tables as lists. A layout for which no rule exists is read as
    ordinary lines.
    """
    return _lida(texto, enviado_em, regiao, vocabulario, assunto, blocos)


def indicios_de(texto: str, *, enviado_em: datetime, regiao: str | None, vocabulario: Vocabulario) -> list[str]:
    """Return the features from which a group message's category is computed."""
    today = enviado_em.astimezone(SAO_PAULO).date()
    marks, found = _marcas(texto, today, regiao, vocabulario)
    signs = contagem(found)
    vagas = _abertas(marks, vocabulario, _inteira(texto, today, regiao, vocabulario, marks))
    return indicios(marks, signs, vagas, julgar(marks.texto, found, signs, marks, vagas))


def _marcas(
    texto: str, today: date, regiao: str | None, known: Vocabulario, blocos: Sequence[Bloco] = BLOCOS
) -> tuple[Folha, list[Sinal]]:
    """Rewrite the tables and calendars of a message as lists. Return two things found in the rewritten text: its marks
    (recognised days, prices, places…) and its signals (phrases that indicate its subject, such as an offer).
    """
    lido = escrito(texto, today, known, blocos)
    found = sinais(lido)
    marks = folha(lido, today, known, regiao, pedidos(lido, found))
    if (clauses := em_oracoes(marks)) is not None:
        marks = folha(clauses, today, known, regiao, pedidos(clauses, found))
    return marks, found


def _inteira(texto: str, today: date, regiao: str | None, known: Vocabulario, marks: Folha) -> Folha:
    """Remove the strike-through signs from the text, and return the marks (recognised days, prices, places…) of the
    result.
    """
    return _marcas(texto.replace("~", " "), today, regiao, known)[0] if marks.riscados else marks


def _abertas(marks: Folha, known: Vocabulario, whole: Folha) -> Montagem:
    """Return the open vacancies in a message. A vacancy is taken if the message repeats it with a strike-through: "5 N
    / 6 N", followed by "~6 N~ já foi" (already taken).
    """
    found = montar(marks, known)
    if not marks.riscados or len({each.hospital.valor for each in found.abertas}) != 1:
        return found
    struck = riscadas(whole, marks.riscados)
    left = tuple(
        each
        for each in found.abertas
        if struck.isdisjoint(((each.data.valor, None), (each.data.valor, each.periodo.valor)))
    )
    return replace(found, abertas=left, fechadas=found.fechadas + len(found.abertas) - len(left))


def _lida(
    texto: str,
    enviado_em: datetime,
    regiao: str | None,
    known: Vocabulario,
    assunto: Assunto,
    blocos: Sequence[Bloco] = BLOCOS,
) -> tuple[Leitura, list[tuple[float, ...]]]:
    today = enviado_em.astimezone(SAO_PAULO).date()
    marks, found = _marcas(texto, today, regiao, known, blocos)
    signs = contagem(found)
    whole = _inteira(texto, today, regiao, known, marks)
    vagas = _abertas(marks, known, whole)
    judged = julgar(marks.texto, found, signs, marks, vagas)
    judged, offer = assunto.rever(judged, indicios(marks, signs, vagas, judged))
    is_offer = judged.categoria is Categoria.OFERTA
    taken = None
    if marks.fechados or marks.riscados:
        taken = tomadas(marks, montar(replace(whole, fechados=()), known), vagas, judged)
    unexplained = inexplicadas(marks, found)
    evidence = Evidencia(marks, signs, unexplained, offer, today)
    features = evidence.de(vagas.abertas)
    read = Leitura(
        is_offer,
        judged.confianca,
        judged.categoria,
        judged.motivo,
        tuple(com_confianca(*each, evidence.limite) for each in zip(vagas.abertas, features, strict=True))
        if is_offer
        else (),
        taken,
        tuple(vagas.incompletas) if is_offer else (),
        tuple(marks.texto.trecho(each.inicio, each.fim) for each in unexplained),
    )
    return read, features
