"""Find requests to be removed or left in peace: "tira meu número da lista", "exclua meus dados", "quero sair", "me
deixa em paz".
"""

from collections.abc import Iterator, Sequence
from typing import Final

from app.contexts.leitura_conversas.escopo import is_narrow
from app.contexts.leitura_conversas.lexico import terms
from app.contexts.leitura_conversas.optout import CERTO, NAO, PROVAVEL, Indicio, is_negated
from app.contexts.leitura_conversas.padroes import named, pattern
from app.contexts.leitura_conversas.texto import Frase, Palavra
from app.contexts.leitura_conversas.tipos import OptOut


def withdrawal(frase: Frase) -> Iterator[Indicio]:
    yield from _remove_data(frase)
    yield from _remove_me(frase)
    yield from _request_removal(frase)
    yield from _cancel_subscription(frase)
    yield from _leave_list(frase)
    yield from _leave_alone(frase)
    yield from _foreign(frase)


# --- "tira meu número", "apague meus dados" -------------------------------------------------------

_REMOVE_DATA = named("retirada", "remove_data")
_OTHER_THING: Final = terms(
    "fixo antigo antiga antigos velho velha anterior errado errada repetido duplicado outro segundo "
    "vencido incompleto comersial resado "
    "bancario bancarios bancaria ospital hospital coordenador sala"
)
_KEPT: Final = terms(
    "deixe mantem mantenha mantenham usa use usem coloca coloque poe troca troque atualiza atualize "
    "cadastra cadastre substitui nova"
)


def _remove_data(frase: Frase) -> Iterator[Indicio]:
    for match in _REMOVE_DATA.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        found = _judge_data(frase, start, end)
        if found is not NAO and not is_negated(frase, start) and not _is_feared(frase, start):
            yield Indicio(found, "retirar_dados", start, end)


def _judge_data(frase: Frase, start: int, end: int) -> OptOut:
    inside, after = frase.palavras[start:end], frase.palavras[end:]
    things = [each for each in inside[1:] if "NUMERO" in each.marcas]
    if not things:
        everything = any(each.texto == "tudo" for each in inside)
        about_me = any(each.texto == "mim" or "ME" in each.marcas or "MEU" in each.marcas for each in after[:8])
        return CERTO if everything and about_me else NAO
    thing = things[-1]
    if inside[0].texto.startswith("fech") and thing.texto != "cadastro":
        return NAO
    mine = any("MEU" in each.marcas for each in inside)
    this = any(each.texto in terms("ese este dele dela dese deste nese neste this") for each in (*inside, *after[:1]))
    if any(each.texto in _OTHER_THING for each in after[:3]) or any(each.texto in _KEPT for each in after[:12]):
        return NAO
    if is_work(after) if "NOME" in thing.marcas else _is_shift(after):
        return NAO
    if "OBJETO" in thing.marcas and "NUMERO" not in thing.marcas:
        return NAO
    to_list = _reaches_list(after)
    if "NOME" in thing.marcas:
        if not mine and not this:
            return NAO
        return (
            CERTO if to_list else (PROVAVEL if _ends(after) and not frase.marcas & {"TRABALHO", "DIA", "NUM"} else NAO)
        )
    if mine or this or to_list or (_ends(after) and thing.texto in terms("numero contato cadastro kadastro dados")):
        return CERTO
    return NAO


_ENDS_OBJECT: Final = terms(
    "conforme segundo artigo art lei lgpd ou porque pois aguardo antes ate em ha imediatamente senao caso "
    "se prazo faz desde"
)


def _is_shift(after: Sequence[Palavra]) -> bool:
    """Return whether a request to remove a number or data is limited to one shift."""
    for each in after[:6]:
        if each.texto == ",":
            return False
        if each.texto in terms("escala plantao reserva turno") or each.marcas & {"DIA"}:
            return True
    return False


def is_work(after: Sequence[Palavra]) -> bool:
    """Return whether the words name a part of the work, not the mailing list: "da escala", "do plantão de sábado", "de
    domingo", "da lista de espera".
    """
    for each in after[:7]:
        if each.texto == "," or (each.texto == "e" and each is not after[0]):
            return False
        if each.texto in _ENDS_OBJECT:
            return False
        if each.marcas & {"TRABALHO", "DIA", "NUM", "ESPECIALIDADE"}:
            if each.texto in terms("plantonistas plantonista candidatos interessados equipe") and any(
                "LISTA" in other.marcas for other in after[:3]
            ):
                continue
            if each.marcas & {"OFERTA"} and each.texto.endswith(("s", "es")) and not each.marcas & {"DIA"}:
                return _narrows_offers(after)
            return True
    return False


def _narrows_offers(after: Sequence[Palavra]) -> bool:
    """Return whether the words restrict the offers. "dos plantões de domingo" restricts them; "da lista de plantões"
    means the whole service.
    """
    at = next(n for n, each in enumerate(after) if "OFERTA" in each.marcas)
    before = any("LISTA" in each.marcas for each in after[:at])
    return not before or is_narrow(after[at + 1 :])


def _reaches_list(after: Sequence[Palavra]) -> bool:
    for each in after[:6]:
        if each.texto == ",":
            return False
        if "LISTA" in each.marcas:
            return True
    return False


def _ends(after: Sequence[Palavra]) -> bool:
    """Return whether only polite words follow in this part of the sentence."""
    for each in after:
        if each.texto == ",":
            return True
        if not each.marcas & {
            "EDUCADO",
            "AFF",
            "RISO",
            "BRAVO",
            "PAREMOJI",
            "PALAVRAO",
            "VOCE",
        } and each.texto not in terms("fasendo moral entaum fas urgensia na"):
            return bool(not each.texto.isascii())
    return True


def _is_feared(frase: Frase, start: int) -> bool:
    """Return whether the person asks about a consequence: "Se eu recusar vocês me tiram da lista?"."""
    if not frase.is_question():
        return False
    before = " ".join(each.texto for each in frase.palavras[:start])
    return any(part in f" {before} " for part in (" se eu ", " vao ", " vai ", " iam ", " risco ", " medo ", " foi "))


# --- "me tira da lista" ---------------------------------------------------------------------------

_REMOVE_ME = named("retirada", "remove_me")
_DOUBT: Final = terms("duvida duvidas sufoco um uma foto print curiosidade sono serio tempo")


def _remove_me(frase: Frase) -> Iterator[Indicio]:
    if not frase.marcas & {
        "TIRAR",
        "DESCADASTRAR",
        "TIRAR_PP",
        "DESCADASTRAR_PP",
        "CANCELAR",
        "FORA",
        "CANCELAR_PP",
        "BLOQUEAR",
    }:
        return
    for match in _REMOVE_ME.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        if is_negated(frase, start) or _is_feared(frase, end):
            continue
        found = _judge_me(frase, start, end)
        if found is not NAO:
            yield Indicio(found, "me_tirar", start, end)


def _judge_me(frase: Frase, start: int, end: int) -> OptOut:
    inside, after = frase.palavras[start:end], frase.palavras[end:]
    marks = frozenset().union(*(each.marcas for each in inside))
    if any(each.texto in _DOUBT for each in after[:3]) or is_work(after) or is_work(frase.palavras[start + 1 : end]):
        return NAO
    if pattern("e (meu|minha) ").search(frase):
        return NAO
    if "BLOQUEAR" in marks:
        return CERTO if "ME" in inside[0].marcas and _ends(after) else NAO
    if "CANCELAR" in marks:
        return CERTO if _reaches_list(after) else NAO
    if "DESCADASTRAR" in marks or "DESCADASTRAR_PP" in marks:
        return CERTO
    if any(each.texto == "fora" for each in inside) and "NUMERO" not in marks:
        return NAO
    listed = _reaches_list(after) or "LISTA" in inside[-1].marcas
    if listed or any(each.texto in terms("whatsapp zap whats selular telefone contatos") for each in after[:4]):
        return CERTO
    if not after or _ends(after):
        if "TIRAR_PP" in marks and "NUMERO" not in marks and all(each.texto != "ser" for each in inside):
            return NAO
        alone = inside[0].marcas & {"TIRAR"} and not marks & {"ME"} and len(frase.palavras) > 4
        return PROVAVEL if alone else CERTO
    if after[0].texto in terms("desa dese desta diso dai daki desas fora"):
        return CERTO
    return NAO


# --- "solicito a exclusão dos meus dados" ---------------------------------------------------------

_REMOVAL_OF = named("retirada", "removal_of")


def _request_removal(frase: Frase) -> Iterator[Indicio]:
    if (
        not frase.marcas & {"REMOCAO", "CANCELAMENTO"}
        and "direito" not in frase.escrita
        and "baixa" not in frase.escrita
        and "parada" not in frase.escrita
    ):
        return
    match = _REMOVAL_OF.search(frase)
    if match is None:
        return
    start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
    inside = frase.palavras[start:end]
    if (
        inside[-1].texto == "agenda"
        or is_work(inside[1:])
        or is_work(frase.palavras[end:])
        or is_negated(frase, start)
        or "PAGAMENTO" in frase.marks_near(start, end)
    ):
        return
    if frase.is_question() and not frase.marcas & {"QUERO", "QUERER"}:
        return
    yield Indicio(CERTO, "pedido_de_remocao", start, end)


# --- "cancela minha inscrição" --------------------------------------------------------------------

_CANCEL = named("retirada", "cancel")
_KEEP_STOP: Final = terms("agenda data arkivo arquivo fila nome robo sistema konta site")


def _cancel_subscription(frase: Frase) -> Iterator[Indicio]:
    for match in _CANCEL.finditer(frase):
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        first, last, after = frase.palavras[start], frase.palavras[end - 1], frase.palavras[end:]
        if first.texto == "para" and not _is_stop_para(frase, start, end):
            continue
        if any(each.texto in _OTHER_THING for each in after[:3]):
            continue
        if first.texto.startswith("deslig") and last.texto in terms("robo bot"):
            yield Indicio(PROVAVEL, "desligar_robo", start, end)
            continue
        if (
            is_negated(frase, start)
            or _is_feared(frase, start)
            or last.texto in _KEEP_STOP
            or (is_work(after) and not (_is_sending(last) and len(after) > 1 and "OFERTA" in after[1].marcas))
            or is_narrow(after, of_messages=True)
        ):
            continue
        if "ISSO" in last.marcas and not last.marcas & {"MSG", "LISTA"}:
            if first.texto.startswith(("desat", "deslig", "desab", "cansel", "inativ")) and not frase.marcas & {
                "TRABALHO",
                "DIA",
                "NUM",
            }:
                yield Indicio(PROVAVEL, "cancelar_isso", start, end)
            continue
        if last.marcas & {"OBJETO"} and not last.marcas & {"MSG", "INSCRICAO"}:
            continue
        if any(each.marcas & {"TRABALHO"} for each in frase.palavras[start:end]) or any(
            each.texto in _KEPT for each in after
        ):
            continue
        if (
            after
            and after[0].texto in terms("anterior ke de antiga errada do da pra")
            and "INSCRICAO" not in last.marcas
        ):
            continue
        yield Indicio(CERTO, "cancelar_inscricao", start, end)


def _is_sending(word: Palavra) -> bool:
    return word.texto in terms("envio envios recebimento disparo disparos mensagem mensagens msg msgs notificacoes")


def _is_stop_para(frase: Frase, start: int, end: int) -> bool:
    """Return whether "para" is the verb "stop": at the start of the sentence and before "com" or "de". Before a noun it
    is a preposition.
    """
    return (
        end - start > 1
        and frase.palavras[start + 1].texto in terms("com de c")
        and "NUMERO" not in frase.palavras[end - 1].marcas
    )


# --- "quero sair da lista" ------------------------------------------------------------------------

_LEAVE = named("retirada", "leave")


def _leave_list(frase: Frase) -> Iterator[Indicio]:
    if not frase.marcas & {"SAIR", "CANCELAR", "CANCELAR_DITO", "PARAR_DITO"}:
        return
    match = _LEAVE.search(frase)
    if match is None:
        return
    start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
    before = {each.texto for each in frase.palavras[max(0, start - 4) : start]}
    if (
        is_negated(frase, start)
        or is_work(frase.palavras[start:])
        or before & {"ospital", "hospital", "pagamento", "ja", "so", "vou", "estou"}
    ):
        return
    if any(each.texto in terms("agenda arkivo sistema fila") for each in frase.palavras[start:end]):
        return
    if any("NUM" in each.marcas or each.texto in terms("depois mais sedo") for each in frase.palavras[end : end + 3]):
        return
    if frase.palavras[start].texto == "sai" and not before & terms("quero como"):
        return
    yield Indicio(CERTO, "sair_da_lista", start, end)


# --- "me deixa em paz" ----------------------------------------------------------------------------

_PEACE = named("retirada", "peace")
_FORGET = named("retirada", "forget")
_FOOT = named("retirada", "foot")
_OUT = named("retirada", "out")
_DOES_NOT = named("retirada", "does_not")


def _leave_alone(frase: Frase) -> Iterator[Indicio]:
    for shape, opt_out, rule in (
        (_PEACE, CERTO, "em_paz"),
        (_FORGET, CERTO, "me_esquece"),
        (_FOOT, CERTO, "do_pe"),
        (_OUT, CERTO, "sai_fora"),
    ):
        match = shape.search(frase)
        if match is None:
            continue
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        inside = {each.texto for each in frase.palavras[start:end]}
        if shape is not _OUT and (is_negated(frase, start) or _DOES_NOT.search(frase)):
            continue
        if (
            shape is not _PEACE
            and shape is not _OUT
            and (is_work(frase.palavras[end:]) or is_narrow(frase.palavras[end:]))
        ):
            continue
        if end < len(frase.palavras) and "NAO" in frase.palavras[end].marcas:
            continue
        if shape is _OUT and is_work(frase.palavras[start:]):
            continue
        if (
            shape is _FOOT
            and "pe" not in inside
            and "cola" not in inside
            and "peskoso" not in inside
            and "kangote" not in inside
        ):
            continue
        if "RISO" in frase.marcas and shape is not _PEACE:
            opt_out = PROVAVEL
        if inside & {"poupe", "poupem", "poupa"}:
            if "trabalho" in frase.escrita:
                continue
            opt_out = PROVAVEL
        yield Indicio(opt_out, rule, start, end)


# --- English and Spanish --------------------------------------------------------------------------

_FOREIGN = named("retirada", "foreign")


def _foreign(frase: Frase) -> Iterator[Indicio]:
    match = _FOREIGN.search(frase)
    if match is not None:
        start, end = frase.word_at(match.start()), frase.word_at(match.end() - 1) + 1
        if not (frase.marcas & {"TRABALHO", "OBJETO"} and not frase.marcas & {"LISTA"}):
            yield Indicio(CERTO, "outra_lingua", start, end)
