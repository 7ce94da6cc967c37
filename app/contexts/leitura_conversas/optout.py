"""Find the wish to receive no more messages, with a grammar of meanings.

Each part of the grammar looks for one kind of wish in one sentence and returns how certain it is:

    cease      "não me manda mais", "para de me ligar", "sem mais mensagens"
    wish       "não quero receber", "prefiro não ser contatada", "não autorizo"
    permission "não autorizo", "revogo meu consentimento"

``retirada`` finds requests to be removed; the model of ``classificador`` recognises other phrasings. The scope
distinguishes a wish from talk about work: "não me manda mais áudio" and "cancela a reserva" are about work.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from app.contexts.leitura_conversas.escopo import goes_to_others, has_time_limit, is_narrow, object_of
from app.contexts.leitura_conversas.lexico import terms
from app.contexts.leitura_conversas.padroes import named
from app.contexts.leitura_conversas.texto import Frase, Palavra
from app.contexts.leitura_conversas.tipos import OptOut

CERTO, PROVAVEL, NAO = OptOut.CERTO, OptOut.PROVAVEL, OptOut.NAO


@dataclass(frozen=True, slots=True)
class Indicio:
    """One sign of a wish in one sentence. ``start`` and ``end`` are the positions of its words."""

    opt_out: OptOut
    regra: str
    start: int
    end: int


def cessation(frase: Frase) -> Iterator[Indicio]:
    yield from _cease_asked(frase)
    yield from _stop_doing(frase)
    yield from _no_more(frase)
    yield from _wish(frase)
    yield from _permission(frase)
    yield from _asked_before(frase)


# --- cease: "não me manda mais" -------------------------------------------------------------------

_NOT_TO = named("optout", "not_to")
_NOT_WANT_THAT = named("optout", "not_want_that")
_WEAK_OBJECTS: Final = terms("outro outra outros outras")
_LATER: Final = terms("tarde sedo ninguem informasoes informacoes detalhes detalhe ou vese alguem")
_COMPLAINT = named("optout", "complaint")
# Not requests: "Vocês sumiram, não me mandam mais nada" misses our messages; "se for pediatria nem me chama" has a
# condition.
_MISSED = named("optout", "missed")


def _cease_asked(frase: Frase) -> Iterator[Indicio]:
    if not frase.marcas & {"NAO", "NADA"} and "proib" not in frase.escrita:
        return
    if _MISSED.search(frase):
        return
    for shape in (_NOT_TO, _NOT_WANT_THAT):
        for match in shape.finditer(frase):
            start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
            found = _judge_cease(frase, start, end)
            if found is not NAO:
                yield Indicio(found, "nao_enviar", start, end)


def _judge_cease(frase: Frase, start: int, end: int) -> OptOut:
    inside, after = frase.palavras[start:end], frase.palavras[end:]
    verb = inside[-1]
    complains = verb.texto.endswith(("a", "rese", "reve")) and _COMPLAINT.search(frase) is not None
    if complains and (frase.is_question() or not _any(after[:4], "MSG")):
        return NAO
    has_me = _any(inside, "ME") or _any(after[:3], "ME") or _to_me(after)
    if "INCLUIR" in verb.marcas:
        listed = _any(after[:5], "LISTA") and not any(each.marcas & {"TRABALHO", "DIA", "NUM"} for each in after[:6])
        anywhere = _any(after[:3], "NADA") and _any(after[:3], "MAIS")
        return CERTO if has_me and (listed or anywhere) else NAO
    has_more = _more(inside[1:], verb) or _more_after(after) or "NUNCA" in inside[0].marcas
    about = object_of(after)
    if goes_to_others(after) or (
        about is not None
        and (about.texto in _WEAK_OBJECTS or ("NUMERO" in about.marcas - {"CONTATO"} and _any(after[:2], "MEU")))
    ):
        return NAO
    if about is not None and "OBJETO" in about.marcas and "MSG" not in about.marcas:
        return NAO
    if (
        about is not None
        and "OFERTA" in about.marcas
        and not has_more
        and any(each.texto in terms("o a esse essa") for each in after[:2])
    ):
        return NAO
    if about is not None and "TRABALHO" in about.marcas and not about.marcas & {"OFERTA", "NUMERO"}:
        return NAO
    at = next((n for n, each in enumerate(after) if each is about), len(after)) if about is not None else 0
    if is_narrow(
        after[at + 1 :] if about is not None and about.marcas & _WHOLE else after,
        of_messages=_is_message(about),
        of_offers=_is_offer(about),
    ):
        return NAO
    if has_time_limit(frase, start, end) or _is_for_today(frase, end):
        return NAO
    return _strength(frase, verb, inside, after, about, has_me=has_me, has_more=has_more)


_WHOLE: Final = frozenset(("MSG", "OFERTA", "NADA", "CONTATO", "ISSO"))


def _strength(
    frase: Frase,
    verb: Palavra,
    inside: tuple[Palavra, ...],
    after: tuple[Palavra, ...],
    about: Palavra | None,
    *,
    has_me: bool,
    has_more: bool,
) -> OptOut:
    whole = about is not None and (bool(about.marcas & _WHOLE) or about.texto in terms("whatsapp zap whats wpp"))
    needless = _any(inside, "PRECISA")
    if verb.marcas & {"INCOMODA", "INSISTIR", "FALAR"}:
        if "INCOMODA" in verb.marcas:
            return CERTO if has_more else NAO
        if "FALAR" in verb.marcas:
            return CERTO if has_me and not needless else NAO
        return PROVAVEL
    if "INCOMODAR" in verb.marcas:
        other = about is not None and not whole and "NUMERO" not in about.marcas and not has_more
        return NAO if not has_me and (_any(inside, "QUERER") or other) else CERTO
    if "CONTATAR" in verb.marcas:
        return CERTO if has_me or (not needless and (has_more or about is None)) else NAO
    if needless and any(each.texto == "novo" for each in after[:3]):
        return NAO
    if needless:
        return _needless(frase, whole=whole, has_me=has_me, has_more=has_more)
    if verb.marcas & {"CHAMAR", "LIGAR", "OFERECER"}:
        if has_more and (has_me or about is None or whole):
            return CERTO
        if has_me and whole:
            return CERTO
        if has_me and after and after[0].texto == "nem":
            return CERTO
        return PROVAVEL if has_me and about is None and not _offers_another_way(after) else NAO
    if has_more and (has_me or whole or about is None):
        return CERTO if whole or about is None else PROVAVEL
    if whole and (has_me or (about is not None and (about.marcas & {"MSG", "NADA"} or about.texto.endswith("s")))):
        return CERTO
    return (
        PROVAVEL if about is None and (has_me or len(frase.palavras) <= 3) and not _offers_another_way(after) else NAO
    )


def _needless(frase: Frase, *, whole: bool, has_me: bool, has_more: bool) -> OptOut:
    """Return how certain the wish is in a sentence such as "Não precisa mais me mandar"."""
    if has_more and has_me:
        return CERTO
    if "JA_RESOLVI" in frase.marcas:
        return NAO
    return (CERTO if whole else PROVAVEL) if has_more else (PROVAVEL if whole else NAO)


def _is_for_today(frase: Frase, end: int) -> bool:
    """Return whether the request is limited to today: "Não me manda mais nada hoje", but not "nem hoje nem nunca"."""
    return any(each.texto == "hoje" for each in frase.palavras[end : end + 4]) and not frase.chaves & terms(
        "nunca partir jamais"
    )


def _is_message(about: Palavra | None) -> bool:
    return about is not None and bool(about.marcas & {"MSG", "CONTATO"}) and "OFERTA" not in about.marcas


def _is_offer(about: Palavra | None) -> bool:
    return about is not None and "OFERTA" in about.marcas


def _offers_another_way(after: tuple[Palavra, ...]) -> bool:
    """Return whether the rest of the sentence asks for another kind of contact, as in "Não me liga, manda mensagem"."""
    return any(
        each.marcas & {"ENVIAR", "CHAMAR", "LIGAR", "JA_RESOLVI"} or each.texto in terms("to tou estou depois")
        for each in after
    )


def _any(words: tuple[Palavra, ...], mark: str) -> bool:
    return any(mark in each.marcas for each in words)


def _to_me(after: tuple[Palavra, ...]) -> bool:
    return any(
        each.texto in terms("mim comigo aki") or (each.texto in terms("numero telefone zap whatsapp selular"))
        for each in after[:7]
    )


def _more(words: tuple[Palavra, ...], verb: Palavra) -> bool:
    return any("MAIS" in each.marcas or each.texto == "mas" for each in words if each is not verb)


def _more_after(after: tuple[Palavra, ...]) -> bool:
    for at, each in enumerate(after[:6]):
        if each.texto == ",":
            return False
        if each.marcas & {"DENOVO"} or (each.texto == "novo" and at and after[at - 1].texto == "de"):
            return True
        if "MAIS" in each.marcas or (each.texto == "mas" and at < 2):
            return not (at + 1 < len(after) and after[at + 1].texto in _LATER)
    return False


# --- cease: "para de me mandar", "chega de mensagem" ----------------------------------------------

_STOP_DOING = named("optout", "stop_doing")
_STOP_THIS = named("optout", "stop_this")
_STOP_PLEASE = named("optout", "stop_please")


def _stop_doing(frase: Frase) -> Iterator[Indicio]:
    if not frase.marcas & {"PARAR", "DEIXAR", "EVITAR", "STOP", "BASTA"}:
        return
    for match in _STOP_DOING.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        found = _judge_stop(frase, start, end)
        if found is not NAO:
            yield Indicio(found, "parar_de", start, end)
    for match in _STOP_THIS.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        if not is_negated(frase, start) and "RISO" not in frase.marcas and not _first_person(frase, start):
            yield Indicio(PROVAVEL, "parar_com_isso", start, end)
    for match in _STOP_PLEASE.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        is_talk = frase.marks_near(start, end) & {"TRABALHO", "JA_RESOLVI"} or "RISO" in frase.marcas
        if not is_talk and not is_negated(frase, start) and not _first_person(frase, start + 1):
            yield Indicio(CERTO, "pare", start, end)


def _judge_stop(frase: Frase, start: int, end: int) -> OptOut:
    inside, after = frase.palavras[start:end], frase.palavras[end:]
    stop, verb = inside[0], inside[-1]
    joint = [each.texto for each in inside[1:5]]
    if stop.texto in terms("para pra chega basta xega deixa deixe deixar") and not {"de", "com", "d", "di", "c"} & set(
        joint
    ):
        return NAO
    if is_negated(frase, start):
        return (
            PROVAVEL
            if "VOCE" in frase.marcas and verb.marcas & {"MSG", "ENVIAR"} and not frase.marcas & {"OFERTA"}
            else NAO
        )
    about = verb if verb.marcas & {"MSG", "CONTATO"} else object_of(after)
    if about is not None and about.marcas & {"OBJETO", "PAGAMENTO"} and not about.marcas & {"MSG", "CONTATO"}:
        return NAO
    if about is not None and "TRABALHO" in about.marcas and "OFERTA" not in about.marcas:
        return NAO
    if goes_to_others(after) or (
        after and after[0].texto in terms("automatica automaticas automatico") and "FALAR" in frase.marcas
    ):
        return NAO
    at = next((n for n, each in enumerate(after) if each is about), -1)
    if is_narrow(after[at + 1 :], of_messages=_is_message(about), of_offers=_is_offer(about)) and not (
        verb.marcas & {"INCOMODAR", "INSISTIR"} and not _any(after[:3], "ESPECIALIDADE")
    ):
        return NAO
    if has_time_limit(frase, start, end, before=0):
        return NAO if _has_clock(frase) else PROVAVEL
    if "INSISTIR" in verb.marcas:
        return PROVAVEL
    if "USAR" in verb.marcas:
        return CERTO if about is not None and "NUMERO" in about.marcas and _any((*inside, *after[:3]), "MEU") else NAO
    if verb.marcas & {"CONTATAR", "OFERECER", "FALAR"} and not (
        _any(inside, "ME")
        or _any(after[:2], "ME")
        or (about and about.marcas & _WHOLE and not verb.texto.startswith("procur"))
    ):
        return NAO
    if "RECEBER" in verb.marcas and about is not None and not about.marcas & _WHOLE:
        return NAO
    if _first_person(frase, start) and "RECEBER" not in verb.marcas:
        return NAO
    return CERTO


def _has_clock(frase: Frase) -> bool:
    return "NUM" in frase.marcas


_BEFORE_NEGATED: Final = frozenset(("ME", "QUERER", "PRECISA", "PODER", "VOCE"))


def is_negated(frase: Frase, start: int) -> bool:
    """Return whether a negation precedes the verb, with only pronouns and auxiliaries between them: "Não me tira da
    lista".
    """
    at = start - 1
    while at >= 0 and start - at <= 4:
        each = frase.palavras[at]
        if "NAO" in each.marcas:
            return True
        if "MAIS" in each.marcas or each.texto == ",":
            return False
        if each.texto in terms("pra para") and frase.palavras[max(0, at - 1)].texto not in terms("e era"):
            return False
        if not (
            each.marcas & _BEFORE_NEGATED or each.texto in terms("e pra para se vai vao deixa que ke posso de a jamais")
        ):
            return False
        at -= 1
    return False


_OWN: Final = terms(
    "vou tive tenho vamos acabei resolvi desidi estou to kuando antes hora medico paciente presiso kiser iria ia"
)


def _first_person(frase: Frase, start: int) -> bool:
    """Return whether the verb is about the speaker ("Vou parar de atender"), not a request ("preciso que parem")."""
    before = frase.palavras[max(0, start - 3) : start]
    if (
        any(each.texto in terms("que pedindo pedir peco para pra") for each in before)
        or "ME" in frase.palavras[min(start + 2, len(frase.palavras) - 1)].marcas
    ):
        return False
    return any(each.texto in _OWN for each in before)


# --- "sem mais mensagens" -------------------------------------------------------------------------

_NO_MORE = named("optout", "no_more")
_WITHOUT: Final = terms("sem menos nenhuma zero")


def _no_more(frase: Frase) -> Iterator[Indicio]:
    for match in _NO_MORE.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        after = frase.palavras[end:]
        first, last = frase.palavras[start], frase.palavras[end - 1]
        if any(each.marcas & {"DIA", "TRABALHO", "ESPECIALIDADE"} for each in after[:4]) and "LISTA" in last.marcas:
            continue
        if (
            is_narrow(after, of_messages="OFERTA" not in last.marcas)
            or is_negated(frase, start)
            or (last.marcas & {"OFERTA"} and _has_article(frase, end - 1))
        ):
            continue
        if after and not _any(after[:2], "VOCE") and after[0].texto in terms("com automatica automaticas resebida"):
            continue
        if (
            first.texto in _WITHOUT
            and not _any(frase.palavras[start:end], "MAIS")
            and (
                start > 1 or any(each.texto != "," and not each.marcas & {"EDUCADO", "MAIS", "VOCE"} for each in after)
            )
        ):
            continue
        yield Indicio(CERTO, "sem_mais", start, end)


def _has_article(frase: Frase, at: int) -> bool:
    return at > 0 and frase.palavras[at - 1].texto in terms("o a ese esa este esta seu sua")


# --- wish: "não quero receber" --------------------------------------------------------------------

_NOT_WANT = named("optout", "not_want")
_NOT_RECEIVE = named("optout", "not_receive")
_WANT_NO_MORE = named("optout", "want_no_more")
_BEFORE_IF: Final = terms("se kuando kaso caso por vou ia pode ja")


def _wish(frase: Frase) -> Iterator[Indicio]:
    if "NAO" not in frase.marcas:
        return
    for match in _NOT_WANT.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        found = _judge_wish(frase, start, end)
        if found is not NAO:
            yield Indicio(found, "nao_quero", start, end)
    for match in _NOT_RECEIVE.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        after = frase.palavras[end:]
        if (
            frase.palavras[end - 1].texto not in terms("reseber resever resebr reseive resibir")
            and "RECEBER" in frase.palavras[end - 1].marcas
        ):
            continue
        if (
            any(each.texto in _BEFORE_IF for each in frase.palavras[max(0, start - 3) : start])
            and "como" not in frase.escrita
        ):
            continue
        about = object_of(after)
        more = _more(frase.palavras[start + 1 : end], frase.palavras[end - 1]) or _more_after(after)
        whole = about is not None and bool(about.marcas & _WHOLE)
        if not (whole or (more and about is None)) or has_time_limit(frase, start, end):
            continue
        if "PAGAMENTO" in frase.marcas and not _is_message(about):
            continue
        at = next((n for n, each in enumerate(after) if each is about), -1)
        if not is_narrow(after[at + 1 :], of_messages=_is_message(about), of_offers=_is_offer(about)):
            yield Indicio(CERTO, "nao_receber", start, end)
    for match in _WANT_NO_MORE.finditer(frase):
        start = frase.word_at(match.start())
        yield Indicio(PROVAVEL, "nao_quero_mais", start, start + 3)


def _judge_wish(frase: Frase, start: int, end: int) -> OptOut:
    inside, after = frase.palavras[start:end], frase.palavras[end:]
    last = inside[-1]
    more = any("MAIS" in each.marcas or each.texto == "mas" for each in inside) or _more_after(after)
    if has_time_limit(frase, start, end) or _is_for_today(frase, end):
        return NAO
    if last.marcas & {"OFERTA", "NADA", "ISSO", "LISTA", "MSG", "CONTATO"} and is_narrow(
        after, of_messages=_is_message(last), of_offers=_is_offer(last)
    ):
        return NAO
    if last.texto in terms("saber ouvir ver"):
        return _judge_know(after)
    if last.texto == "ter":
        return CERTO if _any(after[:3], "CONTATO") and not is_narrow(after[2:]) else NAO
    if last.texto in terms("trabalhar relasao vinculo vinkulo"):
        return PROVAVEL if _any(after[:3], "VOCE") else NAO
    if "RECEBER" in last.marcas:
        return _judge_receive(frase, after)
    if last.marcas & {"CONTATAR_PP", "INCOMODAR_PP", "CHAMAR_PP"}:
        return NAO if is_narrow(after, of_messages=True) else CERTO
    if "VOCE" in last.marcas:
        return PROVAVEL if not after or after[0].texto == "," else NAO
    if "CONTATAR" in last.marcas:
        return CERTO if any("INTERESSE" in each.marcas for each in inside) else NAO
    if last.texto in terms("papo conversa"):
        return (
            NAO
            if "PAGAMENTO" in frase.marcas
            or frase.is_question()
            or (after and after[0].texto in terms("fiada furada mole"))
            else PROVAVEL
        )
    if last.texto in terms("parte partisipar"):
        return CERTO if not after or _any(after[:3], "LISTA") or _any(after[:2], "ISSO") else NAO
    return _judge_wanted_thing(inside, after, more=more)


def _judge_know(after: tuple[Palavra, ...]) -> OptOut:
    if after and "FALAR" in after[0].marcas:
        after = after[1:]
    if after and after[0].texto == "mais":
        after = after[1:]
    if any(each.texto in terms("robo bot maquina") for each in after[:3]):
        return NAO
    if (
        not after
        or after[0].texto == ","
        or (
            after[0].marcas & {"EDUCADO"}
            and after[0].texto in terms("obrigado obrigada por favor pfv tchau ok valeu nao obg mesmo")
        )
    ):
        return PROVAVEL
    if after[0].texto in terms("de diso d da do das dos dese deses desas nada") and not is_narrow(after[1:]):
        about = object_of(after[1:])
        if (
            about is None
            or about.marcas & {"VOCE", "OFERTA", "MSG", "NADA", "ISSO", "PALAVRAO"}
            or after[0].texto in terms("diso nada")
        ):
            return CERTO
    return NAO


def _judge_receive(frase: Frase, after: tuple[Palavra, ...]) -> OptOut:
    about = object_of(after)
    at = next((n for n, each in enumerate(after) if each is about), -1)
    if about is not None and (about.marcas & {"PAGAMENTO", "OBJETO", "NUM"} and not about.marcas & {"MSG"}):
        return NAO
    if about is not None and about.marcas & {"TRABALHO"} and "OFERTA" not in about.marcas:
        return NAO
    if "PAGAMENTO" in frase.marcas and not (about is not None and about.marcas & {"MSG", "OFERTA"}):
        return NAO
    whole = about is not None and bool(about.marcas & _WHOLE)
    if (
        not whole
        and after
        and after[0].texto in terms("por pelo pela via com em")
        and not _any(after[1:3], "NUMERO")
        and not _next_is_polite(after)
    ):
        return NAO
    if is_narrow(after[at + 1 :] if whole else after, of_messages=_is_message(about), of_offers=_is_offer(about)):
        return NAO
    return CERTO


def _next_is_polite(after: tuple[Palavra, ...]) -> bool:
    return len(after) > 1 and after[1].texto in terms("favor gentileza aqui hipotese")


def _judge_wanted_thing(inside: tuple[Palavra, ...], after: tuple[Palavra, ...], *, more: bool) -> OptOut:
    last = inside[-1]
    words = {each.texto for each in inside}
    specific = words & {
        "o",
        "a",
        "ese",
        "esa",
        "este",
        "esta",
        "aquele",
        "deste",
        "dese",
        "desa",
        "nese",
        "nesa",
        "neste",
        "os",
        "so",
        "outro",
        "seu",
        "meu",
        "um",
        "uma",
    }
    if "OFERTA" in last.marcas:
        if any(each.marcas & {"DIA", "ESPECIALIDADE", "NUM"} for each in after[:6]):
            return NAO
        if specific and not words & terms("nenhum nenhuma qualquer"):
            return NAO
        return PROVAVEL
    if last.marcas & {"MSG", "CONTATO"} and "LISTA" not in last.marcas - {"LISTA"}:
        return NAO if (after and after[0].texto == "com" and not _any(after[:2], "VOCE")) else CERTO
    if "NADA" in last.marcas:
        if after and after[0].texto in terms("alem senao exceto"):
            return NAO
        if (
            after
            and after[0].marcas & {"TRABALHO", "ESPECIALIDADE", "OBJETO", "DIA"}
            and "OFERTA" not in after[0].marcas
        ):
            return NAO
        return CERTO if more and last.texto in terms("nada nd nda") else PROVAVEL
    if "ISSO" in last.marcas:
        polite = all(each.texto == "," or each.marcas & {"EDUCADO", "NAO", "AFF", "VOCE"} for each in after)
        return PROVAVEL if more or polite else NAO
    if "LISTA" in last.marcas:
        return PROVAVEL if words & terms("estar ficar nessa na parte") else NAO
    return NAO


# --- permission -----------------------------------------------------------------------------------

_NOT_ALLOW = named("optout", "not_allow")
_REVOKE = named("optout", "revoke")
_NEVER_ALLOWED = named("optout", "never_allowed")


def _permission(frase: Frase) -> Iterator[Indicio]:
    for shape, opt_out in ((_NOT_ALLOW, CERTO), (_REVOKE, CERTO), (_NEVER_ALLOWED, PROVAVEL)):
        match = shape.search(frase)
        if match is None:
            continue
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        if shape is not _NEVER_ALLOWED and any(
            each.marcas & {"OBJETO", "PAGAMENTO", "TRABALHO"} for each in frase.palavras[start + 1 : end + 4]
        ):
            continue
        if shape is _NEVER_ALLOWED and frase.marcas & {"TRABALHO", "OBJETO"} and not frase.marcas & {"MSG", "NUMERO"}:
            continue
        if (
            shape is _NEVER_ALLOWED
            and frase.marcas & {"PAGAMENTO", "OFERTA"}
            and "MSG" not in frase.marcas
            and "NUMERO" not in frase.marcas
        ):
            continue
        yield Indicio(opt_out, "sem_autorizacao", start, max(end, start + 1))


# --- "já mandei PARAR" ----------------------------------------------------------------------------

_ASKED_BEFORE = named("optout", "asked_before")


def _asked_before(frase: Frase) -> Iterator[Indicio]:
    match = _ASKED_BEFORE.search(frase)
    if match is None or frase.marcas & {"TRABALHO", "OBJETO", "RISO"}:
        return
    start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
    if end == len(frase.palavras) or frase.palavras[end].texto not in terms("a o as os um uma meu minha na no"):
        yield Indicio(CERTO, "ja_pediu", start, end)
