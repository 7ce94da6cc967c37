"""Find closing notices: messages that declare vacancies taken, by words or by strike-through."""

import re

from app.contexts.leitura_grupos.juizo.intencao import Juizo
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Fechado
from app.contexts.leitura_grupos.montagem.montar import Montagem
from app.contexts.leitura_grupos.montagem.ocupadas import RESTA
from app.contexts.leitura_grupos.texto.texto import Texto
from app.contexts.leitura_grupos.texto.vocabulario import frases, palavras_soltas
from app.contexts.leitura_grupos.tipos import Categoria, Fechamento, VagaLida

_UNSURE = re.compile(
    r"\b(?:nao|nunca|acho|quase)\b[^.!?;\n]{0,30}$|\b(?:se|caso|quando|sera|assim que|alguem sabe)\b[^.!?;\n]{0,80}$"
)
_ASKED = re.compile(r"[^.!?;\n]{0,200}\?")
_ALL = re.compile(r"(?<!\ba )\b(?:tod[ao]s|tudo|amb[ao]s|as duas|os dois|as tres|os tres)\b")
_WHAT = re.compile(r"\b(?:vagas?|plantao|plantoes|escalas?|turnos?|sd|sn|diurno|noturno|dia)\b")
_AGREED = ("fechado", "fechada", "fechou")


def fecha(texto: Texto) -> bool:
    """Return whether the message contains a word or a strike-through that may mean that a vacancy is taken. This check
    is fast and runs before the full reading.
    """
    return "~" in texto.plano or next(frases("fechado").todas(texto.palavras), None) is not None


def tomadas(folha: Folha, todas: Montagem, abertas: Montagem, juizo: Juizo) -> Fechamento | None:
    """Return the closing notice that a message contains, or None. A question, a denial or a condition is not a notice.

    ``todas`` has the vacancies that the message would offer if none were taken.
    """
    plano = folha.texto.plano
    words = [each for each in folha.fechados if not each.sinal]
    if not all(_is_said(plano, each) for each in words) or juizo.categoria not in _KINDS:
        return None
    still = {_key(each) for each in abertas.abertas}
    taken = tuple(each for each in todas.abertas if _key(each) not in still)
    is_offer = juizo.categoria is Categoria.OFERTA
    if not taken and (is_offer or not words or RESTA.search(plano)):
        return None
    first = min((*words, *folha.riscados, *folha.fechados), key=lambda each: each.inicio)
    said = [plano[each.inicio : each.fim] for each in words]
    return Fechamento(
        trecho=folha.texto.trecho(first.inicio, first.fim),
        vagas=taken,
        hospitais=tuple(dict.fromkeys(each.nome for each in folha.lugares)),
        dias=tuple(dict.fromkeys(day.data for each in folha.dias for day in each.dias)),
        periodos=tuple(dict.fromkeys(each.periodo for each in folha.turnos if each.periodo)),
        certo=is_offer or juizo.motivo == "fechada",
        firme=bool(taken) or bool(_WHAT.search(plano)) or not all(word in _AGREED for word in said),
        claro=all(_is_clear(folha, each) for each in words),
        todas=bool(_ALL.search(plano)) or any(word.endswith(("as", "os", "foram")) for word in said),
    )


_KINDS = (Categoria.OFERTA, Categoria.AVISO, Categoria.CONVERSA)


def _is_said(plano: str, each: Fechado) -> bool:
    """Return whether the message really states that a shift is taken, rather than asking ("já fechou?"), denying ("não
    foi preenchida") or setting a condition.
    """
    return not _UNSURE.search(plano, max(0, each.inicio - 100), each.inicio) and not _ASKED.match(plano, each.fim)


def _is_clear(folha: Folha, each: Fechado) -> bool:
    """Return whether a word such as "coberto" (taken, or covered) refers to the offer: it follows one of the offer's
    words, or it is the first word.

    In "telhado coberto" (covered roof), the word refers to something else.
    """
    plano = folha.texto.plano
    before = list(folha.texto.palavras_entre(max(0, each.inicio - 40), each.inicio))
    if not before or " " in plano[each.inicio : each.fim] or plano[before[-1].fim : each.inicio].strip(" *_"):
        return True
    word = before[-1]
    marks = (*folha.lugares, *folha.dias, *folha.turnos, *folha.areas, *folha.precos, *folha.cidades)
    return (
        word.texto in palavras_soltas("fecha_vaga")
        or not word.texto.isalpha()
        or any(mark.inicio <= word.inicio < mark.fim for mark in marks)
    )


def _key(vaga: VagaLida) -> tuple[object, ...]:
    return vaga.hospital.valor, vaga.data.valor, vaga.periodo.valor, vaga.especialidade.valor
