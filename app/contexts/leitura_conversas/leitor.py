"""Read one inbound text with rules: its class, and whether the person asks for no more messages."""

from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import pairwise
from typing import Final

from app.contexts.leitura_conversas.classes import WANTS_PERSON, classify
from app.contexts.leitura_conversas.irritacao import irritation
from app.contexts.leitura_conversas.lexico import fold, known_words, one_slip, terms
from app.contexts.leitura_conversas.optout import CERTO, NAO, PROVAVEL, Indicio, cessation
from app.contexts.leitura_conversas.padroes import named, pattern
from app.contexts.leitura_conversas.retirada import withdrawal
from app.contexts.leitura_conversas.texto import Frase, Palavra, Texto, separate
from app.contexts.leitura_conversas.tipos import Classe, Leitura, OptOut

_SURE: Final = {CERTO: 0.95, PROVAVEL: 0.6}


def ler(texto: str) -> Leitura:
    """Read a text. Never raises; takes time linear in the length, and reads only both ends of a text beyond 64 Ki
    characters.
    """
    separated = separate(texto)
    found = _opt_out(separated)
    if found is not None:
        opt_out, rule, words = found
        return Leitura(classe=Classe.OPT_OUT, opt_out=opt_out, confianca=_SURE[opt_out], regra=rule, trechos=(words,))
    classe, sure, words = classify(separated)
    return Leitura(classe=classe, opt_out=NAO, confianca=sure, regra="", trechos=(words,) if words else ())


def _opt_out(texto: Texto) -> tuple[OptOut, str, str] | None:
    alone = _alone(texto.frases)
    if alone is not None:
        return alone
    best = _strongest(texto.frases)
    if best is None or best[0] is PROVAVEL:
        quoted = _strongest(texto.citadas) or _alone(texto.citadas)
        if quoted is not None and (best is not None or any(_REPEATS.search(each) for each in texto.frases)):
            return CERTO if quoted[0] is CERTO else PROVAVEL, "citado", quoted[2]
    return best


_REPEATS = named("leitor", "repeats")


def _strongest(frases: Sequence[Frase]) -> tuple[OptOut, str, str] | None:
    found: tuple[OptOut, str, str] | None = None
    seen: set[str] = set()
    rest = _Rest(frases)
    for at, frase in enumerate(frases):
        if frase.escrita in seen or (_INSTRUCTION.search(frase) and "BRAVO" not in frase.marcas):
            continue
        seen.add(frase.escrita)
        for sign in _signs(frase):
            if rest.overrules(sign, at):
                continue
            if sign.opt_out is CERTO:
                return CERTO, sign.regra, frase.words(sign.start, sign.end)
            found = found or (sign.opt_out, sign.regra, frase.words(sign.start, sign.end))
    return found


def _signs(frase: Frase) -> Iterator[Indicio]:
    yield from cessation(frase)
    yield from withdrawal(frase)
    yield from irritation(frase)


# A footer or an advertisement explains how to opt out: "para sair, responda PARAR".
_INSTRUCTION = named("leitor", "instruction")

# --- the person continues the conversation -------------------------------------------------------------

_CONTINUES = named("leitor", "continues")
_ACCEPTS = named("leitor", "accepts")
_NOT_BEFORE: Final = frozenset(("NAO", "NUNCA"))
_FIRM: Final = frozenset(
    ("retirar_dados", "me_tirar", "pedido_de_remocao", "sair_da_lista", "em_paz", "outra_lingua", "sem_autorizacao")
)


class _Rest:
    """Searches the rest of the message for words with which the person continues the conversation: "pode mandar de
    UTI", "me chama em dezembro".
    """

    def __init__(self, frases: Sequence[Frase]) -> None:
        self._frases = frases

    def overrules(self, sign: Indicio, at: int) -> bool:
        frase = self._frases[at]
        if sign.regra in ("parar_de", "cancelar_inscricao", "pare", "nao_quero") and _wants_person(frase):
            return True
        if any(self._continues_at(where, sign, at) for where in self._continues):
            return True
        if sign.opt_out is CERTO:
            return False
        if sign.regra in _MOODS and self._is_warm:
            return True
        return (
            (sign.regra != "ameaca" and _wants_person(frase))
            or self._accepts
            or (self._names_mail_folder and "spam" in frase.escrita)
        )

    def _continues_at(self, where: tuple[int, int, int], sign: Indicio, at: int) -> bool:
        sentence, start, end = where
        if sentence == at and start < sign.end and end > sign.start:
            return False
        return sign.opt_out is PROVAVEL or (sign.regra not in _FIRM and (sentence, start) >= (at, sign.end))

    @cached_property
    def _continues(self) -> list[tuple[int, int, int]]:
        found = []
        for at, frase in enumerate(self._frases):
            for match in _CONTINUES.finditer(frase):
                start = frase.word_at(match.start())
                if not _is_denied(frase, start) and not _is_reported(frase, start):
                    found.append((at, start, frase.word_at(match.end() - 1) + 1))
        return found[:_ENOUGH]

    @cached_property
    def _is_warm(self) -> bool:
        return any("CARINHO" in each.marcas for each in self._frases)

    @cached_property
    def _accepts(self) -> bool:
        return any(_is_accepted(each) for each in self._frases)

    @cached_property
    def _names_mail_folder(self) -> bool:
        return any(_MAIL_FOLDER.search(each) for each in self._frases)


_ENOUGH: Final = 50
_MOODS: Final = frozenset(("de_novo", "cansaco", "hostil", "expressao", "repeticao", "xingamento"))
_MAIL_FOLDER = named("leitor", "mail_folder")


def _is_reported(frase: Frase, start: int) -> bool:
    """Return whether the verb describes an action of other people, not a wish: "se mandarem de novo", "vocês continuam
    mandando".
    """
    before = frase.palavras[start - 1] if start else None
    if before is None:
        return False
    reports = frase.palavras[start].texto in terms("continua segue") and (
        "VOCE" in before.marcas or before.texto in terms("e mas ainda que")
    )
    return reports or before.texto in terms("se caso")


def _wants_person(frase: Frase) -> bool:
    """Return whether the person asks for a human: "Para de mensagem automática e me passa um atendente". The threat
    "vou falar com o gerente" does not count.
    """
    match = WANTS_PERSON.search(frase)
    return match is not None and not any(
        each.texto in terms("vou ou")
        for each in frase.palavras[max(0, frase.word_at(match.start()) - 2) : frase.word_at(match.start())]
    )


def _is_denied(frase: Frase, start: int) -> bool:
    return any(each.marcas & _NOT_BEFORE for each in frase.palavras[max(0, start - 3) : start])


def _is_accepted(frase: Frase) -> bool:
    match = _ACCEPTS.search(frase)
    return match is not None and not _is_denied(frase, frase.word_at(match.start()))


# --- the message is one word ----------------------------------------------------------------------

_CERTAIN: Final = terms(
    "parar pare parem para stop estop sair remover remova remove removam excluir exclua exclui cancelar bloquear bloqueia bloqueie "
    "quit baja retirar descadastro optout desativar end desinscrever tirar apagar deletar "
    "revogo exclusao remocao interromper descadastramento"
)
_PROBABLE: Final = terms(
    "cancelamento cancela cancele cancelem sai saia chega basta xega apague apaga bloqueado bloqueada block retire delete deleta"
)
_KEYWORDS: Final = {**dict.fromkeys(_CERTAIN, CERTO), **dict.fromkeys(_PROBABLE, PROVAVEL)}
_SMALL: Final = frozenset(("EDUCADO", "AFF", "RISO", "BRAVO", "PAREMOJI", "PALAVRAO", "VOCE"))
_AFTER_PARA: Final = terms(
    "ne por favor pfv pf pfvr pls plis ja agora serio julia ju porra caralho merda ai plz please gente "
    "povo mano poxa krl cacete"
)
_GREETINGS: Final = terms(", oi ola bom boa dia tarde noite julia tudo bem ju ne entao obrigado obrigada pelo contato")
_LONGEST_SPLIT: Final = 14


def _alone(frases: Sequence[Frase]) -> tuple[OptOut, str, str] | None:
    signs = [each for frase in frases for each in frase.sinais]
    if signs and all(each.texto in _GREETINGS for frase in frases for each in frase.palavras):
        angry = any(each.marcas & {"BRAVO", "PAREMOJI"} for each in signs)
        return (PROVAVEL, "emoji", " ".join(each.texto for each in signs[:4])) if angry else None
    frases = [
        each for each in frases if not _COURTESY.search(each) or each.chaves & _KEYWORDS.keys() or "NAO" in each.marcas
    ]
    said = [each for frase in frases for each in frase.palavras if each.texto != ","]
    laughs = any("RISO" in each.marcas for each in said)
    if (
        signs
        and said
        and all(each.texto in terms("nao n") for each in said)
        and any(each.marcas & {"BRAVO", "PAREMOJI"} for each in signs)
    ):
        return PROVAVEL, "nao_bravo", "nao"
    if _is_split(said):
        return CERTO, "palavra", "".join(each.texto for each in said)
    wants_more = any(_CONTINUES.search(each) for each in frases)
    if any("DESCADASTRAR" in each.marcas for each in said) and not wants_more and not _is_asked_about(frases):
        return CERTO, "palavra", next(each.texto for each in said if "DESCADASTRAR" in each.marcas)
    if any(each.texto == "hoje" for each in said) and any(each.texto in terms("chega basta") for each in said):
        return None
    content = [each for each in said if each.texto in _KEYWORDS or not (each.marcas & _SMALL or each.texto == "sitado")]
    strengths = [_KEYWORDS.get(each.texto) for each in content]
    if content and not laughs and all(strengths) and _para_stands_alone(frases) and not _is_question(frases):
        if len(said) == 2 and said[0].texto == "opt":
            return CERTO, "palavra", "opt out"
        return (CERTO if CERTO in strengths else PROVAVEL), "palavra", content[0].texto
    if any(left.texto == "opt" and right.texto == "out" for left, right in pairwise(said)):
        return CERTO, "palavra", "opt out"
    return None if laughs else _last_word(frases)


_SAID = named("leitor", "said")


def _last_word(frases: Sequence[Frase]) -> tuple[OptOut, str, str] | None:
    """Find a sentence, or a part between commas, that consists of one imperative: "Já me mudei. Pare.", "número errado,
    parem".
    """
    for frase in frases:
        parts: list[list[Palavra]] = [[]]
        for each in frase.palavras:
            if each.texto == ",":
                parts.append([])
            elif each.texto.isascii() and not each.marcas & _SMALL:
                parts[-1].append(each)
        for part in parts:
            if (
                part
                and len(part) == 1
                and part[0].texto in terms("sair parar cancelar remover")
                and _SAID.search(frase)
            ):
                return CERTO, "palavra", part[0].texto
            if len(part) == 1 and part[0].texto in terms("pare parem stop") and not frase.is_question():
                return CERTO, "palavra", part[0].texto
        if (
            len(parts[-1]) == 1
            and parts[-1][0].texto == "para"
            and frase.palavras[-1].texto == "para"
            and len(frase.palavras) < _LONGEST_SPLIT
        ):
            return CERTO, "palavra", "para"
    return None


_LONG_KEYWORDS: Final = terms("parar cancelar remover excluir descadastrar")


def _is_split(said: Sequence[Palavra]) -> bool:
    """Return whether the words are one keyword written in pieces: "pa rar", "sa ir"."""
    whole = "".join(each.texto for each in said)
    if len(said) == 1 and not said[0].marcas and said[0].texto not in known_words():
        return any(one_slip(whole, each) for each in _LONG_KEYWORDS)
    in_pieces = any(len(each.texto) <= 2 or not each.marcas for each in said)
    return 1 < len(said) <= 4 and len(whole) <= _LONGEST_SPLIT and in_pieces and _KEYWORDS.get(fold(whole)) is CERTO


def _is_asked_about(frases: Sequence[Frase]) -> bool:
    return any(
        _INSTRUCTION.search(each)
        or pattern("NAO (LEVE|QUERER|VOCE){0,4} (ser)? (DESCADASTRAR|DESCADASTRAR_PP)").search(each)
        or each.marcas & {"TRABALHO"}
        for each in frases
        if "DESCADASTRAR" in each.marcas
    )


def _is_question(frases: Sequence[Frase]) -> bool:
    return any(each.is_question() and "PODER" not in each.marcas and each.chaves & _KEYWORDS.keys() for each in frases)


_COURTESY = named("leitor", "courtesy")


def _para_stands_alone(frases: Sequence[Frase]) -> bool:
    for frase in frases:
        for at, each in enumerate(frase.palavras):
            after = frase.palavras[at + 1] if at + 1 < len(frase.palavras) else None
            if (
                each.texto == "para"
                and after is not None
                and after.texto.isascii()
                and after.texto not in (",", "para", *_AFTER_PARA)
            ):
                return False
    return True
