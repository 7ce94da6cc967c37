"""Find signs that a person probably wants no more messages: anger, repetition, threats, no interest at all, a wrong
number.
"""

from collections.abc import Iterator
from typing import Final

from app.contexts.leitura_conversas.escopo import has_time_limit, is_narrow
from app.contexts.leitura_conversas.lexico import terms
from app.contexts.leitura_conversas.optout import CERTO, PROVAVEL, Indicio
from app.contexts.leitura_conversas.padroes import Padrao, named, named_all, pattern
from app.contexts.leitura_conversas.texto import Frase

_FILLER: Final = frozenset(("EDUCADO", "AFF", "RISO", "BRAVO", "PAREMOJI", "PALAVRAO", "VOCE", "LEVE", "DENOVO"))
_WORK: Final = frozenset(("TRABALHO", "PAGAMENTO", "ESPECIALIDADE", "OBJETO", "DIA", "NUM"))


def irritation(frase: Frase) -> Iterator[Indicio]:
    for parts in (
        _threat,
        _repetition,
        _weariness,
        _hostile,
        _idiom,
        _no_interest,
        _no_shifts,
        _wrong_person,
        _insult,
        _law,
    ):
        yield from parts(frase)


def _sign(frase: Frase, shape: Padrao, rule: str) -> Indicio | None:
    match = shape.search(frase)
    if match is None:
        return None
    start = frase.word_at(match.start())
    return Indicio(PROVAVEL, rule, start, max(start + 1, frase.word_at(match.end() - 1) + 1))


def content(frase: Frase) -> int:
    """Return the number of words that carry meaning, without filler words."""
    return sum(1 for each in frase.palavras if each.texto != "," and each.texto.isascii() and not each.marcas & _FILLER)


# --- threats --------------------------------------------------------------------------------------

_THREATS: Final = named_all("irritacao", "threats")
_OTHER_TROUBLE: Final = terms(
    "roubado roubaram roubo assalto furto clonaram clonado assinar assino contrato atraso atrasado calote"
)
_TARGET_IS_WORK: Final = terms(
    "datas dias agendas vagas plantoes hospitais agenda vaga plantao data dia hospital plantonista pagamento pix banco conta "
    "cartao colega coordenador calote semana horario atraso atrasado cadastro inscricao contrato documento nota"
)


def _threat(frase: Frase) -> Iterator[Indicio]:
    if "PAGAMENTO" in frase.marcas or frase.chaves & _OTHER_TROUBLE or pattern("sem querer").search(frase):
        return
    if "NAO" in frase.marcas and pattern("NAO (LEVE|VOCE){0,2} (BLOQUEAR|DENUNCIAR)").search(frase):
        return
    if frase.is_question() and pattern("(VOCE) (vao|vai|LEVE){0,2} (BLOQUEAR|DENUNCIAR)").search(frase):
        return
    if frase.marcas & {"BLOQUEAR_PP", "DENUNCIAR_PP"} and frase.marcas & {"TRABALHO", "DIA", "OBJETO"}:
        return
    for shape in _THREATS:
        found = _sign(frase, shape, "ameaca")
        if found is not None and not any(
            each.texto in _TARGET_IS_WORK or "DIA" in each.marcas for each in frase.palavras[found.end : found.end + 4]
        ):
            yield found
            return


# --- repetition -----------------------------------------------------------------------------------

_SAID_NO = named("irritacao", "said_no")
_AGAIN_AND_AGAIN: Final = named_all("irritacao", "again_and_again")
_SHORT_AGAIN = named("irritacao", "short_again")
_RESEND = named("irritacao", "resend")


_THANKS = named("irritacao", "thanks")


def _repetition(frase: Frase) -> Iterator[Indicio]:
    if (found := _sign(frase, _SAID_NO, "ja_falei")) is not None and not (
        is_narrow(frase.palavras[found.end :], of_offers=True) or has_time_limit(frase, found.start, found.end)
    ):
        yield found
    busy = _is_about_work(frase)
    if frase.fim == "?" and _CALM.search(frase):
        return
    if not busy and not (frase.is_question() and pattern("tem|ha|teria").search(frase) and "VOCE" not in frase.marcas):
        for shape in _AGAIN_AND_AGAIN:
            if (found := _sign(frase, shape, "repeticao")) is not None:
                yield found
                return
    match = _SHORT_AGAIN.search(frase)
    if (
        match is not None
        and _RESEND.search(frase) is None
        and _THANKS.search(frase) is None
        and len(frase.palavras) <= 9
    ) and (
        any(each.marcas & {"AFF", "VOCE", "ISSO", "BRAVO", "PALAVRAO", "MSG"} for each in frase.palavras)
        or "?" in frase.fim
        or len(frase.palavras) <= 3
    ):
        yield Indicio(PROVAVEL, "de_novo", 0, len(frase.palavras))


def _is_about_work(frase: Frase) -> bool:
    """Return whether the sentence is about work. Days and hours alone do not count: "todo dia isso"."""
    if "PAGAMENTO" in frase.marcas:
        return True
    if frase.marcas & {"MSG", "ISSO"}:
        return False
    return any(
        each.marcas & {"TRABALHO", "PAGAMENTO", "ESPECIALIDADE"} and each.texto not in terms("dia semana mes manha")
        for each in frase.palavras
    )


# --- weariness ------------------------------------------------------------------------------------

_WEARY: Final = named_all("irritacao", "weary")


def _weariness(frase: Frase) -> Iterator[Indicio]:
    words = {each.texto for each in frase.palavras}
    if "RISO" in frase.marcas or (_CANNOT.search(frase) and not frase.marcas & {"MSG", "VOCE"}):
        return
    work = frase.marcas & (_WORK - {"NUM", "DIA"}) and not (frase.marcas & {"MSG", "VOCE"})
    if (
        work
        or words & terms("hospital queria paciente pacientes email caiu caixa pasta")
        or "PAGAMENTO" in frase.marcas
    ):
        return
    if len(frase.palavras) > 40:
        return
    if "hoje" in frase.chaves and frase.chaves & terms("deu chega basta"):
        return
    if "spam" in frase.escrita and (frase.is_question() or pattern("NAO (e|LEVE){1,2} (um|so)? spam").search(frase)):
        return
    for shape in _WEARY:
        if (found := _sign(frase, shape, "cansaco")) is not None:
            yield found
            return


_HOSTILE_FILLER: Final = frozenset(
    (
        "LEVE",
        "EDUCADO",
        "AFF",
        "VOCE",
        "PALAVRAO",
        "ISSO",
        "HOSTIL",
        "NAO",
        "BRAVO",
        "PAREMOJI",
        "MSG",
        "ABUSO",
        "INCOMODA",
        "CHATO",
        "MAIS",
        "DE",
        "EM",
    )
)
_HOSTILE_WORDS: Final = terms(
    "ficando virou passando passou parece foi era ser muito demais ta esta mto bem tao so tanta tanto "
    "quanta coisa sem falta haja acabou acabando "
    "santa parte total puro pura estao sendo sao ter tem que ja isso pela hein nossa povo empresa tipo virando "
    "chegou chega ate quando pior mesma mesmo com"
)
_CANNOT = named("irritacao", "cannot")


def _hostile(frase: Frase) -> Iterator[Indicio]:
    """Yield a sign for a short sentence that only expresses annoyance: "tá ficando chato", "que falta de respeito"."""
    if (
        "HOSTIL" not in frase.marcas
        or (frase.is_question() and "spam" in frase.escrita)
        or frase.marcas & (_WORK - {"NUM"})
        or "RISO" in frase.marcas
        or _CANNOT.search(frase)
    ):
        return
    other = [
        each
        for each in frase.palavras
        if each.texto != ","
        and each.texto.isascii()
        and not each.marcas & _HOSTILE_FILLER
        and each.texto not in _HOSTILE_WORDS
    ]
    if not other and len(frase.palavras) <= 12:
        yield Indicio(PROVAVEL, "hostil", 0, len(frase.palavras))


_IDIOMS: Final = named_all("irritacao", "idioms")


def _idiom(frase: Frase) -> Iterator[Indicio]:
    if frase.marcas & {"PAGAMENTO", "ESPECIALIDADE"} or "RISO" in frase.marcas or len(frase.palavras) > 30:
        return
    if any(
        each.texto in terms("ospital hospital plantao escala upa vaga pasiente pasientes") for each in frase.palavras
    ) and not frase.marcas & {"MSG", "VOCE"}:
        return
    if frase.is_question() and (
        frase.chaves & {"pode", "podem", "poderia", "poso"} or (frase.fim == "?" and _CALM.search(frase))
    ):
        return
    if _OWN_MESSAGES.search(frase) and "VOCE" not in frase.marcas:
        return
    if frase.is_question() and frase.chaves & terms("aceita respeita"):
        return
    for shape in _IDIOMS:
        found = _sign(frase, shape, "expressao")
        if found is not None and not (shape in _AT_THIS_HOUR and not _is_upset(frase)):
            yield found
            return


_CALM = named("irritacao", "calm")
_AT_THIS_HOUR: Final = _IDIOMS[6:7]


_OWN_MESSAGES = pattern("(mandei|enviei|recebi) (LEVE|umas){0,2} (NUM|duas|tres|varias)")


def _is_upset(frase: Frase) -> bool:
    if frase.marcas & {"EVITAR", "PODER", "QUERO"}:
        return False
    return bool(frase.marcas & {"AFF", "PALAVRAO", "BRAVO", "VOCE"}) or "?" in frase.fim or "!" in frase.fim


# --- no interest in anything ----------------------------------------------------------------------

_NO_INTEREST: Final = named_all("irritacao", "no_interest")


def _no_interest(frase: Frase) -> Iterator[Indicio]:
    if "INTERESSE" not in frase.marcas:
        return
    for shape in _NO_INTEREST:
        found = _sign(frase, shape, "sem_interesse")
        if found is None:
            continue
        inside = frase.palavras[found.start : found.end]
        specific = any(
            each.texto in terms("nesa nese nesta neste na no desa pela pelo naquele o esa ese") for each in inside
        ) and not any(each.marcas & {"NADA", "ISSO"} for each in inside)
        if (
            specific
            or is_narrow(frase.palavras[found.end :], of_offers="OFERTA" in inside[-1].marcas)
            or has_time_limit(frase, found.start, found.end)
        ):
            continue
        if any(each.texto in terms("momento agora ora") for each in frase.palavras[found.end :]):
            continue
        yield found
        return


# --- no shifts any more ---------------------------------------------------------------------------

_NO_SHIFTS: Final = named_all("irritacao", "no_shifts")


_STILL = named("irritacao", "still")


def _no_shifts(frase: Frase) -> Iterator[Indicio]:
    for shape in _NO_SHIFTS:
        found = _sign(frase, shape, "sem_plantao")
        if found is None:
            continue
        after = frase.palavras[found.end :]
        inside = frase.palavras[found.start : found.end]
        if (
            is_narrow(after, of_offers="OFERTA" in inside[-1].marcas)
            or has_time_limit(frase, found.start, found.end)
            or any(each.marcas & {"ESPECIALIDADE", "DIA", "NUM"} for each in (*inside, *after[:3]))
        ) and not any(each.texto.startswith("aposent") for each in inside):
            continue
        if any(
            each.texto in terms("ese esa nese nesa desa dese momento agora enkanto daki asim deste neste la semana mes")
            for each in (*inside, *after[:5])
        ):
            continue
        if {"plantao", "o"} <= {each.texto for each in inside}:
            continue
        if "RISO" in frase.marcas or _STILL.search(frase):
            continue
        if any(
            each.texto in terms("mae pai chefe colega paciente ele ela coordenador")
            for each in frase.palavras[: found.start]
        ):
            continue
        yield found
        return


# --- wrong person ---------------------------------------------------------------------------------

_WRONG: Final = named_all("irritacao", "wrong")
_RELAY = named("irritacao", "relay")


def _wrong_person(frase: Frase) -> Iterator[Indicio]:
    if pattern("(mandei|enviei|engano meu|desculpa|desculpe|me enganei)").search(frase):
        return
    if _RELAY.search(frase) and not pattern("(faleceu|morreu)").search(frase):
        return
    for shape in _WRONG:
        if (found := _sign(frase, shape, "pessoa_errada")) is not None:
            if is_narrow(frase.palavras[found.end :]) or frase.chaves & terms("liguei RISO"):
                continue
            if frase.marcas & {"PAGAMENTO", "DIA", "OFERTA", "RISO"} or pattern("paciente|golpe").search(frase):
                continue
            yield found
            return


# --- insults and law ------------------------------------------------------------------------------

_CURSE: Final = named_all("irritacao", "curse")
_SHORT_CURSE = named("irritacao", "short_curse")


def _insult(frase: Frase) -> Iterator[Indicio]:
    work = frase.marcas & (_WORK - {"NUM"})
    if "RISO" in frase.marcas or work:
        return
    for shape in _CURSE:
        if (found := _sign(frase, shape, "xingamento")) is not None:
            yield found
            return
    if (
        "PALAVRAO" in frase.marcas
        and _SHORT_CURSE.search(frase)
        and frase.marcas & {"VOCE", "BRAVO", "DENOVO", "ISSO", "MSG"}
        | frozenset(each.texto for each in frase.palavras) & {"outra", "novo"}
    ):
        yield Indicio(PROVAVEL, "xingamento", 0, len(frase.palavras))


_SUSPECT = named("irritacao", "suspect")


_PAPERS = pattern(
    "(termo|assinei|assinado|documento|aceitei|curso|treinamento|hospital|paciente|prontuario|conforme|adequado|seguem|segue)"
)


def _law(frase: Frase) -> Iterator[Indicio]:
    asks = frase.is_question() and "MEU" in frase.marcas and _SUSPECT.search(frase) is None
    papers = _PAPERS.search(frase) is not None and "REMOCAO" not in frase.marcas
    if "LGPD" in frase.marcas and "OBJETO" not in frase.marcas and not asks and not papers:
        start = next(n for n, each in enumerate(frase.palavras) if "LGPD" in each.marcas)
        yield Indicio(PROVAVEL, "lgpd", start, start + 1)
    match = _SUSPECT.search(frase)
    if match is not None and frase.marcas & {"PALAVRAO", "BRAVO", "LGPD", "CHATO"}:
        yield Indicio(PROVAVEL, "quem_deu", frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1)


__all__ = ["CERTO", "content", "irritation"]
