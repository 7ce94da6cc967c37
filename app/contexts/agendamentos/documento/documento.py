"""Find a patient's CPF, RG and SUS card in one spreadsheet cell. The rules look first at labels, then at check digits.
They skip relatives' documents.

The text is split into tokens: labels, numbers, issuers, states, and words such as "mãe" (mother) that say whose
document a number is. The rules read the tokens from left to right.
"""

import re
from collections.abc import Iterator
from dataclasses import field
from enum import Enum, auto
from operator import mul
from typing import Final, NamedTuple

from app.contexts.agendamentos.endereco.geografia import ESTADOS
from app.contexts.agendamentos.texto import diz_nada, limpo
from batuta.kernel import dataclass

CPF_INVALIDO: Final = "cpf_invalido"
CPF_DE_OUTRA_PESSOA: Final = "documento_de_outra_pessoa"
CNS_INVALIDO: Final = "cns_invalido"
ORGAOS: Final = (
    "SSPDS", "SSP", "DETRAN", "IFP", "SDS", "SJS", "SJTC", "SESPDC", "SESDC", "SESP", "SEGUP", "SEJUSP", "SPTC", "IIRGD",
    "ITEP", "IGP", "PC", "DIC", "PM", "MAER", "MEX", "MMA", "MB", "EB",
)  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class Documento:
    """One person's documents. ``rg`` has digits and possibly a final X. ``orgao_emissor`` and ``uf_emissor`` are the
    issuer and the state of the RG.
    """

    cpf: str | None = None
    rg: str | None = None
    orgao_emissor: str | None = None
    uf_emissor: str | None = None
    cns: str | None = None
    avisos: tuple[str, ...] = ()

    @property
    def diz_algo(self) -> bool:
        return bool(self.cpf or self.rg or self.cns)


def cpf_valido(digits: str) -> bool:
    if len(digits) != 11 or not digits.isdigit() or len(set(digits)) == 1:
        return False
    numbers = [*map(int, digits)]
    return numbers[9] == _check(numbers, _FIRST_WEIGHTS) and numbers[10] == _check(numbers, _SECOND_WEIGHTS)


_FIRST_WEIGHTS: Final = range(10, 1, -1)
_SECOND_WEIGHTS: Final = range(11, 1, -1)


def _check(numbers: list[int], weights: range) -> int:
    """Return the check digit for the given leading digits of a CPF. ``weights`` has one weight for each of these
    digits.
    """
    rest = sum(map(mul, numbers, weights)) % 11
    return 0 if rest < 2 else 11 - rest


def cns_valido(digits: str) -> bool:
    if len(digits) != 15 or not digits.isdigit() or digits[0] not in "12789":
        return False
    return sum(int(digit) * weight for digit, weight in zip(digits, range(15, 0, -1), strict=True)) % 11 == 0


def documento_de(texto: str) -> Documento:
    bare = limpo(texto)
    if "(" in bare:
        bare = _LABEL_BEHIND.sub(r"\2 \1 \3", bare)
    if _SPACED_START.search(bare):
        bare = _SPACED.sub(_join_digits, bare)
    return Documento() if diz_nada(bare) else _read(list(_tokens(bare)))


_LABEL_BEHIND = re.compile(
    r"([0-9][0-9.-]{3,17}x?)\s?\((cpf|rg|cns)\b([^()0-9]{0,20})\)", re.IGNORECASE
)  # 529.982.247-25 (CPF)
_SPACED_START = re.compile(r"[0-9]\s[0-9]\s[0-9]\s[0-9]\s")  # a text without a match cannot match ``_SPACED``
_SPACED = re.compile(r"(?<![0-9])(?:[0-9]\s){10}[0-9](?!\s?[0-9])")  # 5 2 9 9 8 2 2 4 7 2 5


def _join_digits(found: "re.Match[str]") -> str:
    return re.sub(r"\s", "", found[0])


class Tipo(Enum):
    CPF = auto()
    RG = auto()
    CNS = auto()
    OUTRO = auto()  # another kind of document
    NUMERO = auto()
    ORGAO = auto()
    UF = auto()
    ALHEIO = auto()  # document of the mother, the father or another person
    PROPRIO = auto()
    PAUSA = auto()


class Token(NamedTuple):
    tipo: Tipo
    texto: str
    end: int = 0
    start: int = 0


_ISSUERS = "|".join(ORGAOS)
_STATES = "|".join(ESTADOS)
_LAST = rf"(?:[0-9](?![0-9a-zªº°])|x(?![a-z])|x(?=(?:{_ISSUERS})))"  # check character of an RG
_NUMBERS = (
    r"[0-9]{1,2}/[0-9]{1,2}/(?:[0-9]{4}|[0-9]{2})(?![0-9])"  # a date of issue
    r"|[0-9]{1,2}[ªº°a]\s?via"
    r"|[0-9]{2}\.?[0-9]{3}\.?[0-9]{3}/[0-9]{4}-?[0-9]{2}(?![0-9])"  # a CNPJ
    r"|[0-9]{3}[ .][0-9]{4}[ .][0-9]{4}[ .][0-9]{4}(?![0-9])"  # a SUS card
    r"|[0-9]{3}[. ,]\s?[0-9]{3}[. ,]\s?[0-9]{3}\s?[-./ ]\s?[0-9]{2}(?![0-9])"  # a CPF
    r"|[0-9]{9}\s?[-/. ]\s?[0-9]{2}(?![0-9])"
    r"|[0-9]{6,8}-[0-9]{2}(?![0-9])"  # an RG with two check digits
    r"|\(?[0-9]{2}\)?\s?9?[0-9]{4}-[0-9]{4}(?![0-9])"  # a phone number
    rf"|[0-9]{{1,3}}(?:[. ][0-9]{{3}})+(?:\s?[-./]?\s?{_LAST}|\s?-\s?[0-9]{{2}}(?![0-9]))?"
    rf"|[0-9]{{1,13}}\s?-\s?{_LAST}"
    r"|[0-9]+x?"
)
# Most alternatives begin with a letter at the start of a word. The first check of each branch skips other characters.
_TOKEN = re.compile(
    rf"""
      (?=[0-9(])(?P<number>{_NUMBERS})
    | (?=[a-z])(?:(?<![a-z])|(?<=[0-9-]x))(?:
      (?P<other>\b(?:cnh|habilita[cç][aã]o|cnpj|t[ií]tulo(?:\s+(?:de\s+)?eleitor)?|ctps|carteira\s+de\s+trabalho|passaporte|pass
        |rn[em]|crnm|certid[aã]o(?:\s+de\s+nascimento)?|crm|coren|crea|oab|cro|crf|telefones?|fone|tel|cel(?:ular)?|whats(?:app)?|zap
        |pis|nis|nit|pasep|matr[ií]cula|prontu[aá]rio|carteirinha|conv[eê]nio|protocolo|dnv|reservista|s[eé]rie|registro|cep)(?![a-zà-ÿ]))
    | (?P<cns>\b(?:c\.?\s?n\.?\s?s|cart[aã]o\s+(?:do\s+|nacional\s+(?:de\s+sa[uú]de\s*)?)?(?:sus)?|sus)(?![a-zà-ÿ]))
    | (?P<cpf>(?<![a-zà-ÿ])(?:c\.?\s?p\.?\s?f|cin|cic|carteira\s+de\s+identidade\s+nacional)(?![a-zà-ÿ]|\.[a-z])\.?)
    | (?P<rg>(?<![a-zà-ÿ])(?:r\.?\s?g|identidade|id(?:ent)?|c\.?\s?i|registro\s+geral|c[eé]dula)(?![a-zà-ÿ])\.?)
    | (?P<else>\b(?:m[aã]e|pai|pais|respons[aá]vel|resp|genitora?|espos[ao]|c[oô]njuge|marido|av[oóô]|tutora?|acompanhante|ti[ao]
        |irm[aã]o?|filh[ao]|m[aã]es|sogr[ao]|madrasta|padrasto|cuidadora?|curadora?)(?![a-zà-ÿ]))
    | (?P<own>\b(?:paciente|pr[oó]pri[ao]|benefici[aá]ri[ao])(?![a-zà-ÿ]))
    | (?P<prefix>(?<![a-z])(?:{_STATES}|m)\s?-?\s?(?=[0-9]{{1,3}}\.[0-9]{{3}}\.[0-9]{{3}}|[0-9]{{6,8}}(?![0-9])))
    | (?P<issuer>(?P<name>{_ISSUERS})(?P<of>(?:\s*+(?:[-/.(]\s*+)?|\s++d[eo]\s++)(?:{_STATES})(?![a-z]))?(?![a-z]))
    | (?P<uf>(?<![a-z])(?:{_STATES})(?![a-zà-ÿ]))
    | (?P<secretary>secretaria\s+d[ea]\s+seguran[cç]a\s+p[uú]blica)
    | (?P<police>pol[ií]cia\s+civil))
    | (?P<pause>[;|\n])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_KINDS: Final = {
    "other": Tipo.OUTRO, "cns": Tipo.CNS, "cpf": Tipo.CPF, "rg": Tipo.RG, "else": Tipo.ALHEIO, "own": Tipo.PROPRIO,
    "number": Tipo.NUMERO, "uf": Tipo.UF, "prefix": Tipo.UF, "pause": Tipo.PAUSA,
}  # fmt: skip
_SPELT_OUT: Final = {"secretary": "SSP", "police": "PC"}  # issuers that are written in full
_DATE = re.compile(r"[0-9]{1,2}/[0-9]{1,2}/|.*via$", re.IGNORECASE)
_TELEPHONE = re.compile(r"\(?[0-9]{2}\)?\s?9?[0-9]{4}-[0-9]{4}")
_RG_SHAPE = re.compile(r"[0-9]{1,2}\.[0-9]{3}\.[0-9]{3}-?[0-9x]", re.IGNORECASE)


def _tokens(texto: str) -> Iterator[Token]:
    for found in _TOKEN.finditer(texto):
        kind = str(found.lastgroup)
        said, (start, end) = found[0], found.span()
        if kind == "issuer":
            yield Token(Tipo.ORGAO, found["name"].upper(), end, start)
            if found["of"]:
                yield Token(Tipo.UF, found["of"][-2:].upper(), end, start)
        elif kind in _SPELT_OUT:
            yield Token(Tipo.ORGAO, _SPELT_OUT[kind], end, start)
        elif kind == "prefix":
            letters = re.sub(r"[^a-z]", "", said.lower()).upper()
            yield Token(Tipo.UF, "MG" if letters == "M" else letters, end, start)
        elif not (kind == "number" and _DATE.match(said)):
            yield Token(_KINDS[kind], said, end, start)


class Papel(NamedTuple):
    """A number in a text, with the kinds of document that the surrounding words allow. If ``pode`` is empty, the number
    is none of the patient's documents.
    """

    start: int
    end: int
    pode: frozenset[Tipo]


DOS_NOSSOS: Final = frozenset({Tipo.CPF, Tipo.RG, Tipo.CNS})
_NADA: Final = frozenset[Tipo]()
_NEVER = re.compile(
    r"""
      (?<![0-9])[0-3]?[0-9](?:/[01]?[0-9]/(?:[0-9]{4}|[0-9]{2})|[.-][01]?[0-9][.-](?:19|20)[0-9]{2})(?![0-9])
    | (?<![0-9])(?:19|20)[0-9]{2}-[01][0-9]-[0-3][0-9](?![0-9])
    | \b(?:nasc\w*|d\.?n|emiss\w*|emitid\w*|expedi\w*|validade)[^0-9\w]{0,4}[0-9]{6,8}(?![0-9])
    | [0-9]{2}\.?[0-9]{3}\.?[0-9]{3}/[0-9]{4}-?[0-9]{2}(?![0-9])
    | (?<![0-9])(?:\+?55\s?)?\(?[1-9][1-9]\)?[ .-]?9[ .]?[0-9]{4}[ .-]?[0-9]{4}(?![0-9])
    | \([1-9][1-9]\)\s?[2-5][0-9]{3}[ .-]?[0-9]{4}(?![0-9]) | (?<![0-9])[1-9][1-9]\s[2-5][0-9]{3}-[0-9]{4}(?![0-9])
    """,
    re.IGNORECASE | re.VERBOSE,
)
_JOINED = re.compile(r"[ ./()-]{0,3}")


def papeis(texto: str) -> Iterator[Papel]:
    """Yield every number in a text, and the kinds of document that the number may be. The text must have been
    normalised by ``limpo``.

    The module ``verificacao`` uses these kinds to check the language model's answer.
    """
    tokens, now = list(_tokens(texto)), _Estado()
    never = [found.span() for found in _NEVER.finditer(texto)]
    last: Papel | None = None
    for place, token in enumerate(tokens):
        if token.tipo is not Tipo.NUMERO:
            _walk(now, tokens, place)
            continue
        expected = frozenset(now.esperados)
        pode = (
            _NADA if Tipo.OUTRO in expected or _is_theirs(now, tokens, place) else expected & DOS_NOSSOS or DOS_NOSSOS
        )
        is_rest = last is not None and not last.pode and _JOINED.fullmatch(texto[last.end : token.start]) is not None
        if not expected and is_rest:
            pode = _NADA  # no kind, because this is the second part of a number that was written with spaces
        _walk(now, tokens, place)
        last = Papel(token.start, token.end, pode)
        yield last
    # Numbers with these shapes are not documents, unless a label names a document. Eleven digits with valid check
    # digits may still be a CPF.
    for start, end in never:
        is_cpf = cpf_valido(re.sub(r"[^0-9]", "", texto[start:end]))
        if not _is_labelled(tokens, start):
            yield Papel(start, end, frozenset({Tipo.CPF}) if is_cpf else _NADA)


def _is_labelled(tokens: list[Token], start: int) -> bool:
    before = [token for token in tokens if token.start < start]
    return bool(before) and before[-1].tipo in DOS_NOSSOS and start - before[-1].end <= 4


@dataclass(slots=True)
class _Estado:
    esperados: list[Tipo] = field(default_factory=list)  # labels that still wait for their number
    alheio: bool = False  # True while the numbers that follow belong to another person
    alheio_ate_rotulo: bool = False
    cpf: str | None = None
    rg: str | None = None
    cns: str | None = None
    orgao: str | None = None
    uf: str | None = None
    solto: tuple[str | None, str | None] = (None, None)  # an issuer that precedes its RG
    rg_aberto: bool = False  # the last number was an RG, so the next issuer belongs to it
    orgao_alheio: bool = False  # the last number and its issuer belong to another person
    avisos: list[str] = field(default_factory=list)


def _read(tokens: list[Token]) -> Documento:
    now = _Estado()
    for place in range(len(tokens)):
        _walk(now, tokens, place)
    return Documento(
        cpf=now.cpf,
        rg=now.rg,
        orgao_emissor=now.orgao if now.rg else None,
        uf_emissor=now.uf if now.rg else None,
        cns=now.cns,
        avisos=tuple(dict.fromkeys(now.avisos)),
    )


def _walk(now: _Estado, tokens: list[Token], place: int) -> None:
    token = tokens[place]
    match token.tipo:
        case Tipo.NUMERO:
            following = tokens[place + 1] if place + 1 < len(tokens) else None
            before = tokens[place - 1] if place else None
            if before is not None and before.tipo is Tipo.UF and before.end == token.start and not now.esperados:
                now.esperados.append(Tipo.RG)  # MG-12.345.678
            _number(now, token.texto, is_theirs=_is_theirs(now, tokens, place), following=following)
        case Tipo.CPF | Tipo.RG | Tipo.CNS | Tipo.OUTRO:
            _label(now, token.tipo, is_next=place > 0 and tokens[place - 1].tipo is Tipo.NUMERO)
        case Tipo.ALHEIO:
            if not _belongs_to_the_last(tokens, place):
                now.alheio, now.alheio_ate_rotulo = True, bool(now.esperados)
        case Tipo.PROPRIO:
            now.alheio = False
        case Tipo.PAUSA if not _is_between_label_and_number(tokens, place):
            now.alheio, now.esperados = False, []
        case Tipo.ORGAO:
            _issuer(now, orgao=token.texto)
        case Tipo.UF:
            _issuer(now, uf=token.texto[:2].upper())


def _is_between_label_and_number(tokens: list[Token], place: int) -> bool:
    """Return whether a separator merely separates a label from its number, as in the exported cell
    "RG;0987654321;SSP;BA".
    """
    if place == 0 or place + 1 == len(tokens) or tokens[place + 1].tipo is not Tipo.NUMERO:
        return False
    pause, before = tokens[place], tokens[place - 1]
    is_label = before.tipo in DOS_NOSSOS or before.tipo in (Tipo.OUTRO, Tipo.ALHEIO)
    return is_label and pause.texto in ";|" and pause.start - before.end <= 1


def _is_theirs(now: _Estado, tokens: list[Token], place: int) -> bool:
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    return now.alheio or (
        following is not None and following.tipo is Tipo.ALHEIO and _belongs_to_the_last(tokens, place + 1)
    )


def _belongs_to_the_last(tokens: list[Token], place: int) -> bool:
    """Return whether a word such as "mãe" describes the number before it ("529.982.247-25 (mãe)") rather than the
    number after it ("mãe: CPF …").
    """
    if place == 0 or tokens[place - 1].tipo not in (Tipo.NUMERO, Tipo.UF, Tipo.ORGAO):
        return False
    following = tokens[place + 1] if place + 1 < len(tokens) else None
    return following is None or following.tipo in (Tipo.PAUSA, Tipo.PROPRIO) or following.start - tokens[place].end > 3


def _label(now: _Estado, tipo: Tipo, *, is_next: bool) -> None:
    if now.alheio and now.alheio_ate_rotulo:
        now.alheio = False
    if is_next or tipo is Tipo.OUTRO or Tipo.OUTRO in now.esperados:
        now.esperados = []
    now.esperados.append(tipo)
    now.rg_aberto = now.orgao_alheio = False


def _issuer(now: _Estado, *, orgao: str | None = None, uf: str | None = None) -> None:
    if now.rg_aberto:
        now.orgao = now.orgao or orgao
        now.uf = now.uf or uf
    elif now.rg is None and not now.orgao_alheio:
        now.solto = (orgao or now.solto[0], uf or now.solto[1])


_NOT_DIGITS = re.compile(r"[^0-9X]")


def _number(now: _Estado, texto: str, *, is_theirs: bool, following: Token | None) -> None:
    digits = _NOT_DIGITS.sub("", texto.upper())
    kind = _kind(now, texto, digits, following)
    if kind is not None and is_theirs:
        now.avisos.append(CPF_DE_OUTRA_PESSOA)
        now.orgao_alheio = True
        now.esperados = [] if now.alheio_ate_rotulo else now.esperados
        now.alheio = now.alheio and not now.alheio_ate_rotulo
        return
    now.rg_aberto = False
    match kind:
        case Tipo.CPF:
            now.esperados = [each for each in now.esperados if each is not Tipo.CPF]
            if cpf_valido(digits):
                now.cpf = now.cpf or digits
            elif now.cpf is None:
                now.avisos.append(CPF_INVALIDO)
        case Tipo.RG if now.rg is None:
            now.rg, now.rg_aberto = digits, True
            now.orgao, now.uf = now.solto
            now.solto = (None, None)
            now.esperados = [each for each in now.esperados if each is not Tipo.RG]
        case Tipo.CNS:
            now.esperados = [each for each in now.esperados if each is not Tipo.CNS]
            now.cns = digits if cns_valido(digits) else now.cns
            now.avisos += [] if cns_valido(digits) else [CNS_INVALIDO]
        case _:
            pass


def _kind(now: _Estado, texto: str, digits: str, following: Token | None) -> Tipo | None:
    """Return the kind of document that a number is, or None if the number is not a document."""
    if Tipo.OUTRO in now.esperados:
        now.esperados = []
        return None
    if Tipo.CPF in now.esperados and (len(digits) in (9, 10, 11) or Tipo.RG not in now.esperados):
        is_pair = Tipo.RG in now.esperados and not cpf_valido(digits)
        return Tipo.RG if is_pair and len(digits) < 11 else Tipo.CPF
    if Tipo.RG in now.esperados and 4 <= len(digits) <= 14:
        return Tipo.RG
    if Tipo.CNS in now.esperados and len(digits) == 15:
        return Tipo.CNS
    if now.esperados or _TELEPHONE.fullmatch(texto):
        return None
    return _classify(now, texto, digits, following)


def _classify(now: _Estado, texto: str, digits: str, following: Token | None) -> Tipo | None:
    if len(digits) == 11 and digits.isdigit():
        return Tipo.CPF if cpf_valido(digits) else None
    if cns_valido(digits):
        return Tipo.CNS
    is_issued = following is not None and following.tipo is Tipo.ORGAO
    if now.rg is None and 5 <= len(digits) <= 10 and (is_issued or _RG_SHAPE.fullmatch(texto)):
        return Tipo.RG
    return None
