"""Add the month to days that are listed below the name of a month: "JULHO" above "09 SN", "SN: 05, 07 e 12", "05, 12,
19".
"""

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from datetime import date, timedelta

from app.contexts.leitura_grupos.blocos.escrita import Linha, dito
from app.contexts.leitura_grupos.texto.texto import MES, MESES, contem, e_mes
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario
from batuta.kernel import dataclass

NOME = "mes"
# A line with more characters than LONGA is text and not a list of days. A message with more than MAIS_MESES months is
# not a list of shifts.
LONGA, MAIS_MESES = 400, 24
_MESES = tuple(each[:3] for each in MESES)
_SOZINHO = re.compile(
    rf"(?<!\d)(?<!\d )(?<!\d de )(?<!rio de )(?<!/)(?<!-)\b(?P<mes>{MES})\b(?!\.? \d{{1,2}}(?!\d| ?/))"
)
_FAIXA = re.compile(
    r"(?<![\d/])(?P<d>\d{1,2})(?: ?/ ?(?P<m>\d{1,2}))? ?(?:a|ate|ao|-|–"
    r"|e) ?(?P<ate>\d{1,2})(?: ?/ ?(?P<ma>\d{1,2})(?:/(?:20)?\d\d)?)?(?![\d/h:])"
)
_SEMANA_DE = re.compile(r"\bsemana (?:de |do dia |dia )?(?P<d>\d{1,2}) ?/ ?(?P<m>\d{1,2})(?!\d)")
_WD = r"(?:segunda|terca|quarta|quinta|sexta|sabado|domingo|seg|ter|qua|qui|sex|sab|dom|[2-6]a)(?:[- ]?feira)?\b\.?"
_N = r"(?:0?[1-9]|[12]\d|3[01])(?!\d|[/.:]\d|[.,]\d|h|k| ?h\b| ?mil\b| ?(?:vagas?|plant|medic|clinic|pediatr|reais|x ))"
_LISTA = rf"{_N}(?:(?: {{0,2}}[,/;+&] {{0,2}}(?:e )?| e | a | ate | ) ?{_N}){{0,40}}"
_TURNO = (
    r"(?:sd|sn|diurn[oa]|noturn[oa]|noites?|manhas?|tardes?|cinderela|cind|24 ?h|12 ?h|6 ?h|\d{1,2}h? ?(?:-|as"
    r"|a) ?\d{1,2} ?h?|dia(?! \d)|[dnmt])\b"
)
_DECO = r"[^\w~]{0,8}"
_MES_E_LISTA = re.compile(
    rf"\b{MES}\b(?:/\d{{2,4}})?[^\w\n]{{0,2}}:[^\w\n]{{0,3}}(?:dias? )?(?P<dias>{_LISTA})(?=\W|$)"
)
_ROTULO = r"(?:(?!vagas?|plant|total|temos|faltam?|restam?|sao)[a-z][a-z ./-]{1,30}: ?)?"
_ANTES_DO_TURNO = re.compile(
    rf"^{_DECO}{_ROTULO}(?:{_WD}[ ,.(-]{{0,3}})?(?:dias? )?(?P<dias>{_LISTA})"
    rf"(?P<wd>[^\w\n]{{1,4}}{_WD}\)?)?(?P<liga>[^\w\n]{{1,6}}){_TURNO}"
)
_DEPOIS_DO_TURNO = re.compile(
    rf"(?:^|[^\w]){_TURNO}[^\w\n]{{0,3}}(?::|>|=|-|\((?!\d\)))[^\w\n]{{0,4}}(?:dias? )?(?P<dias>{_LISTA})(?=\W*$|[ )]*[,;.|(])"
)
# Matches a shift and its days without a colon, at the start of a line or of a part of it: "SN 09, 12 e 16 | SD 11".
_SEM_DOIS_PONTOS = re.compile(
    rf"(?:^{_DECO}{_ROTULO}|\|[^\w\n]{{0,3}})(?:sd|sn|diurn[oa]|noturn[oa]|noite|manha|tarde|cinderela|p12[dn]) (?:dias? )?"
    rf"(?P<dias>\d\d(?!\d)(?<=0[1-9]|[12]\d|3[01])(?:(?: ?[,/;+&] ?(?:e )?| e ){_N}){{0,40}})(?=\W*$|[ )]*\|)"
)
# Matches letters of shifts directly before their days: "N05 D08".
_LETRA_ANTES = re.compile(r"(?<![\w/])(?P<t>[DN])(?P<d>0?[1-9]|[12]\d|3[01])(?!\w|[.,/:]\d)")
# Matches a month before its day, at the start of a line with a shift or a weekday: "jun 03 SN".
_MES_ANTES = re.compile(rf"^{_DECO}(?P<mes>{MES})\.? (?P<d>\d{{1,2}})(?=[^\w\n]{{1,4}}(?:{_TURNO}|{_WD}))")
# A faster pattern. A text without a match of it cannot match ``_MES_ANTES``.
_MES_E_DIA = re.compile(r"[onlvrtiz]\.? \d\d?[^\w\n]{1,4}[dnmtscqp\d]")
# Matches days of a list without spaces: "12,14,16", but not a price such as "1,25".
_COLADAS = re.compile(
    r"(?<![\d.,$])(?:0[1-9]|[12]\d|3[01])(?:,(?:0[1-9]|[12]\d|3[01])){1,20}(?![\d,%]|\.\d| ?k\b| ?mil\b| ?reais)"
)
# Matches labels for the shifts of a list of days: "Noites: 12, 14" and "Dias: 13, 15".
_NOITES = re.compile(r"[^\w\n]{0,6}noites? ?:")
_DIAS = re.compile(r"[^\w\n]{0,6}(?P<dias>dias?) ?:")
# A faster pattern. A line without a match of it has no list of several days behind a shift.
_LISTA_DEPOIS = re.compile(r"[:>=(-][^\w\n]{0,4}(?:dias? )?\d{1,2} {0,2}(?:[,/;+&]|e |a )")
_SO_DIAS = re.compile(
    rf"^{_DECO}(?:~\d{{1,2}}~[ ,]{{0,2}}(?:e )?)?(?:dias? )?(?P<dias>{_LISTA})(?: ?\(?{_WD}\)?)?[^\w\n]{{0,4}}$"
)
_DIA_DA_SEMANA = re.compile(
    rf"^{_DECO}(?P<dias>{_N})[ ,.(-]{{1,3}}{_WD}(?! {{1,2}}\d{{1,2}}\b)|^{_DECO}{_WD}[ ,.(-]{{1,3}}(?P<so>{_N})(?=\W|$)"
)
_NO_FIM = re.compile(rf":[^\w\n]{{0,3}}(?:dias? )?(?P<dias>{_LISTA})[^\w\n]{{0,3}}$")
_COM_PRECO = re.compile(
    rf"(?<![\w/$.,])(?P<dias>{_LISTA})(?:o(?=:))?(?:\)[ ]{{0,2}}:?|[ ]{{0,2}}(?:[:=]"
    rf"|\(feriado\):?)) {{0,2}}(?:todos )?(?:r\$ ?)?(?!9?\d{{4}}[ -]?\d{{4}}\b)\d[\d.]{{2,6}}\b"
)
_T = r"(?:sd|sn|dn|[dnmt])"
_P = r"(?:diurno|noturno|cinderela|manha|tarde|noite|madrugada|dia|24h|sd|sn|dn|[dnmt])"
_LISTA_COM_TRACOS = re.compile(r"\W{0,6}\d{1,2}(?: - \d{1,2})+\W{0,4}")
# Matches days of a shift that are joined by dashes: "SN: 10-11-13".
_TRACOS_COLADOS = re.compile(rf"\W{{0,6}}{_TURNO}[^\w\n]{{1,3}}\d{{1,2}}(?:-\d{{1,2}})+\W{{0,4}}")
_COM_LETRA = re.compile(
    rf"(?P<d>[0-3](?<![\w/$.,:-].)(?:(?<=0)[1-9]|(?<=[12])\d?|(?<=3)[01]?)|[4-9](?<![\w/$.,:-].))(?P<mes> ?/ ?\d{{1,2}})?"
    rf"(?P<turno>(?P<liga> ?[(\[:-] ?| )?(?P<t>{_T}(?:(?: ?[/+,&] ?| e | )(?:{_T})\b(?! ?\())*)\b(?: ?[)\]])?"
    rf"| {{0,2}}\((?P<p>{_P}(?:(?: ?[/+,&] ?| e | ou ){_P})*)\))(?!['.]?\w)"
)
# A line without a match cannot have a letter of a shift behind a day, because the letter is in upper case or in brackets.
_LETRA = re.compile(r"\d ?[-–—:]? ?(?:[DNMT]|S[DN])|\d {0,2}[(\[]")
_LETRAS = {"d": "SD", "n": "SN", "m": "manhã", "t": "tarde", "dn": "SD e SN", "dia": "SD", "noite": "SN"}
# Matches the signs between two shifts of a day: "16 (D) (N)".
_DOIS_PARENTESES = re.compile(r"(?:(?<=\([dnmt])|(?<=\(s[dn]))\) ?(?:(?:e|ou|\+|,) ?)?\((?=(?:[dnmt]|s[dn])\))")
_COMO_SE_LE = (" sd", " sn")
_COM_TURNO = re.compile(r"(?P<d>\d(?<![\w/$.,:-]\d)\d?) (?:(?:a|à) )?(?:sd|sn|diurno|noturno|noite|manha|tarde)\b")
_DATA = re.compile(r"(?<![\d/])(\d{1,2})/(\d{1,2})(?!\d)")
_DIA_DITO = re.compile(rf"\d ?/ ?\d|\b{_WD}")
_NUMERO = re.compile(r"\d{1,2}")
_ALGARISMO = re.compile(r"\d")


@dataclass(frozen=True, slots=True)
class Meses:
    """The months and weeks that a message names. ``nomes`` maps the index of a line to the month that the line names."""

    hoje: date
    linhas: Sequence[Linha]
    nomes: dict[int, int]

    @classmethod
    def de(cls, found: Sequence[Linha], hoje: date) -> "Meses":
        named: dict[int, int] = {}
        for place, line in enumerate(found):
            if len(line.texto) >= 120 or not contem(line.plano, _MESES) or len(named) >= MAIS_MESES:
                continue
            if (month := _mes_em(line.plano)) is not None:
                named[place] = month
        return cls(hoje, found, named)

    def em(self, place: int) -> int | None:
        """Return the month that applies to a line: the last month named in the line or above it. If there is none,
        return the month named below the line, provided that only one month is named there.
        """
        if not self.nomes:
            return None
        lines = [*self.nomes]
        at = bisect_right(lines, place)
        if at:
            return self.nomes[lines[at - 1]]
        below = {*self.nomes.values()}
        return below.pop() if len(below) == 1 else None

    def numero(self, plano: str) -> int | None:
        return _mes_em(plano)

    @staticmethod
    def faixa(plano: str) -> re.Match[str] | None:
        return _FAIXA.search(plano)

    def semana(self, place: int) -> tuple[date, date, int] | None:
        """Return the first and the last day of a week that a line above a table names, and the index of that line."""
        for at in range(place - 1, max(-1, place - 8), -1):
            plano = self.linhas[at].plano
            for found in _FAIXA.finditer(plano):
                last = self._data(int(found["ate"]), found["ma"] or found["m"] or self.em(at))
                if last is None:
                    continue
                month = found["m"] or (
                    last.month if int(found["d"]) <= int(found["ate"]) else (last.month - 2) % 12 + 1
                )
                first = self._data(int(found["d"]), month)
                if first is not None and 2 <= (last - first).days <= 7:
                    return first, last, at
            if (week := _SEMANA_DE.search(plano)) is not None:
                day = self._data(int(week["d"]), week["m"])
                if day is not None:
                    monday = day - timedelta(days=day.weekday())
                    return monday, monday + timedelta(days=6), at
        return None

    def _data(self, day: int, month: str | int | None) -> date | None:
        if month is None:
            return None
        for year in (self.hoje.year, self.hoje.year + 1):
            try:
                found = date(year, int(month), day)
            except ValueError:
                return None
            if found >= self.hoje - timedelta(days=60):
                return found
        return None


def _mes_em(plano: str) -> int | None:
    """Return the number of the first month that the text names, or None."""
    named = (each["mes"] for each in _SOZINHO.finditer(plano) if e_mes(plano, *each.span("mes")))
    first = next(named, None)
    return None if first is None else _MESES.index(first[:3]) + 1


def dia_do_mes(line: Linha, month: int | None) -> Linha:
    """Add the month to a day: "15" becomes "15/01". If the month is unknown, add the word "dia"."""
    plano = line.plano
    if "/" in plano or (found := re.search(r"\d{1,2}(?!\d)(?![.-]\d)", plano)) is None:
        return line
    if re.search(r"\d[.-]\d", plano):
        return line
    return line.com(found.end(), f"/{month:02d}") if month is not None else _com_dia(line, found.start())


_COLADO = re.compile(rf"(?P<d>\d(?<![\w/]\d)\d?)(?P<mes>{MES})(?P<ano>\d{{4}}|\d\d)?(?!\w)")
_DO_MES = re.compile(
    r"(?P<d>\d(?<!\w\d)\d?)(?P<qual> (?:do (?:mes )?corrente|d?(?:este|esse) mes|do mes que vem|do proximo mes)\b)"
)


def _por_extenso(line: Linha, hoje: date) -> Linha:
    """Convert days written in other forms, such as "07MAR26" or "26 e 27 do corrente", to day and month."""
    plano = line.plano
    if (before := _MES_ANTES.match(plano)) is not None:
        month = _MESES.index(before["mes"][:3]) + 1
        line = line.trocada(before.start("mes"), before.end("d"), f"{before['d']}/{month:02d}")
        plano = line.plano
    for each in reversed([*_COLADO.finditer(plano)]):
        year = f"/{each['ano']}" if each["ano"] else ""
        line = line.trocada(each.end("d"), each.end(), f"/{_MESES.index(each['mes'][:3]) + 1:02d}{year}")
    if " mes" in plano or " corrente" in plano:
        for each in reversed([*_DO_MES.finditer(plano)]):
            later = "vem" in each["qual"] or "proximo" in each["qual"]
            line = line.trocada(*each.span("qual"), f"/{(hoje.month - 1 + later) % 12 + 1:02d}")
    return line


def _has_other_forms(plano: str) -> bool:
    if " mes" in plano or " corrente" in plano or _COLADO.search(plano) is not None:
        return True
    return _MES_E_DIA.search(plano) is not None


def reescrever(found: list[Linha], hoje: date, vocabulario: Vocabulario) -> list[Linha]:
    """Add the month to days that are listed below the name of the month. If the message names no month, and at least
    two lines have numbers that may be days, mark these numbers as days.
    """
    plano = "\n".join([each.plano for each in found])
    if _has_other_forms(plano):
        found = [_por_extenso(each, hoje) if len(each.texto) <= LONGA else each for each in found]
    if _COLADAS.search(plano) is not None:
        found = [_com_espacos(each) for each in found]
    if "noite" in plano and any(_NOITES.match(each.plano) for each in found):
        found = [_com_turno_do_dia(each) for each in found]
    meses = Meses.de(found, hoje)
    if meses.nomes:
        found = _sem_tracos(found)
    fixed = [bool(each.bloco) or len(each.texto) > LONGA for each in found]
    if meses.nomes:
        found = [each if fixed[place] else _listados(each, meses.em(place)) for place, each in enumerate(found)]
    found = [each if fixed[place] else _letras(each, meses.em(place)) for place, each in enumerate(found)]
    spans = [None if fixed[place] else _dias(each.plano, bool(meses.nomes)) for place, each in enumerate(found)]
    strong = sum(each is not None for each in spans)
    if not strong:
        return _por_dia(found)
    result: list[Linha] = []
    for place, (line, span) in enumerate(zip(found, spans, strict=True)):
        month = meses.em(place)
        if span is None or (month is None and (strong < 2 or span[2] == "lista")):
            result.append(line)
        elif month is None:
            result.append(_com_dia(line, span[0]))
        else:
            result.append(_com_mes(line, span[0], span[1], month))
    return _por_dia(result)


def _por_dia(found: list[Linha]) -> list[Linha]:
    months: dict[int, int] = {}
    for each in found:
        if len(each.texto) <= LONGA and "/" in each.texto:
            months.update((int(day), int(month)) for day, month in _DATA.findall(each.texto))
    plano = "\n".join([each.plano for each in found]) if months else ""
    if not months or (_COM_TURNO.search(plano) is None and _COM_PRECO.search(plano) is None):
        return found
    return [
        each if len(each.texto) > LONGA else _turnos_por_dia(_precos_por_dia(each, months), months) for each in found
    ]


def _turnos_por_dia(line: Linha, months: Mapping[int, int]) -> Linha:
    """Add the month to days that are followed by a shift: "já foi: 05 SD e 06 SN". The month comes from another mention
    of the same day in the message.
    """
    named = [*_COM_TURNO.finditer(line.plano)]
    for each in reversed(named):
        if int(each["d"]) in months:
            line = line.com(each.end("d"), f"/{months[int(each['d'])]:02d}")
    return line


def _sem_tracos(found: list[Linha]) -> list[Linha]:
    """Replace dashes in lists of days with commas: "10 - 12 - 17 - 24". Two days joined by a dash may be a range, so
    their dash is replaced only if another line has three days joined by dashes.
    """
    if any(_TRACOS_COLADOS.fullmatch(each.plano) and each.plano.count("-") > 1 for each in found):
        found = [_com_virgulas(each) if _TRACOS_COLADOS.fullmatch(each.plano) else each for each in found]
    if not any(_LISTA_COM_TRACOS.fullmatch(each.plano) and each.plano.count(" - ") > 1 for each in found):
        return found
    return [
        Linha(re.sub(r" [-–—] ", " , ", each.texto), each.lugares) if _LISTA_COM_TRACOS.fullmatch(each.plano) else each
        for each in found
    ]


def _com_turno_do_dia(line: Linha) -> Linha:
    """Replace the label "Dias:" by "SD:". It names a shift if another line has the label "Noites:"."""
    said = _DIAS.match(line.plano)
    return line if said is None else line.trocada(*said.span("dias"), "SD")


def _com_espacos(line: Linha) -> Linha:
    """Insert a space after each comma in a list of days: "12,14,16" becomes "12, 14, 16"."""
    for each in reversed([*_COLADAS.finditer(line.texto)]):
        for comma in reversed([*re.finditer(",", each[0])]):
            line = line.com(each.start() + comma.end(), " ")
    return line


def _com_virgulas(line: Linha) -> Linha:
    for each in reversed([*re.finditer(r"(?<=\d)-(?=\d)", line.texto)]):
        line = line.trocada(*each.span(), ", ")
    return line


def _listados(line: Linha, month: int | None) -> Linha:
    """Add the month to days that follow a shift without a colon: "SN 09, 12 e 16 | SD 11", "N05 D08"."""
    if month is None:
        return line
    for found in reversed([*_SEM_DOIS_PONTOS.finditer(line.plano)]):
        line = _com_mes(line, *found.span("dias"), month)
    letters = [*_LETRA_ANTES.finditer(line.texto)]
    for each in reversed(letters if len(letters) > 1 else ()):
        line = line.trocada(*each.span(), f"{each['d']}/{month:02d} S{each['t']}")
    return line


def _letras(line: Linha, month: int | None) -> Linha:
    """Expand the letters that name shifts after days, and add the month: "24(N), 25(D/N)" becomes "24/12 SN, 25/12 SD e
    SN".
    """
    if _LETRA.search(line.texto) is None:
        return line
    for each in reversed([*_DOIS_PARENTESES.finditer(line.plano)]):
        line = line.trocada(*each.span(), "/")
    named = [each for each in _COM_LETRA.finditer(line.plano) if _e_turno(line, each)]
    counts = [each for each in named if not each["mes"]]
    if _sao_quantidades(line.plano, counts):
        named = [each for each in named if each["mes"]]
    if not any(each["mes"] for each in named) and (month is None or not named) and len(named) < 2:
        return line
    for each in reversed(named):
        if each["mes"] and each["turno"] in _COMO_SE_LE:
            continue
        named_shifts = re.findall(_P if each["p"] else _T, each["p"] or each["t"])
        shifts = " e ".join(_LETRAS.get(shift, shift) for shift in named_shifts)
        if line.plano[slice(*each.span("turno"))] != f" {shifts}".lower():
            line = line.trocada(*each.span("turno"), f" {shifts}")
        if not each["mes"]:
            line = line.com(each.end("d"), f"/{month:02d}") if month else _com_dia(line, each.start("d"))
    return line


def _sao_quantidades(plano: str, named: Sequence[re.Match[str]]) -> bool:
    """Return whether numbers count shifts rather than name days, as in "2 SN e 1 SD na UPA: sáb SN, dom SN e dom SD".
    Each number must have one digit and a different shift, and the days of the shifts must follow.
    """
    if not named or any(each["p"] or len(each["d"]) > 1 for each in named):
        return False
    shifts = [each["t"] for each in named]
    if len({*shifts}) < len(shifts) or sum(int(each["d"]) for each in named) > 12:
        return False
    return _DIA_DITO.search(plano, named[-1].end()) is not None


def _com_dia(line: Linha, at: int) -> Linha:
    return line if re.search(r"\bdias? $", line.plano[:at]) else line.com(at, "dia ")


def _e_turno(line: Linha, found: re.Match[str]) -> bool:
    """Return whether letters after a number denote a shift. Only letters in brackets or in upper case do."""
    is_bracketed = found["p"] is not None or found["turno"].strip()[:1] in ("(", "[")
    return is_bracketed or line.texto[slice(*found.span("t"))].isupper()


def _precos_por_dia(line: Linha, months: Mapping[int, int]) -> Linha:
    """Add the month to days that are followed by a price: "24 e 31: R$ 3.000". The month comes from another mention of
    the same day in the message.
    """
    named = [*_COM_PRECO.finditer(line.plano)]
    for each in reversed(named):
        for number in reversed([*_NUMERO.finditer(line.plano, *each.span("dias"))]):
            if int(number[0]) in months:
                line = line.com(number.end(), f"/{months[int(number[0])]:02d}")
    return line


def _dias(plano: str, has_month: bool) -> tuple[int, int, str] | None:
    """Return the part of the line that has days without a month, and how the line states them: before a shift
    (``turno``), next to a weekday (``semana``) or in a list (``lista``). Return None if the line has no such days.
    """
    if _ALGARISMO.search(plano) is None:
        return None
    if (found := _ANTES_DO_TURNO.match(plano)) is not None:
        return *found.span("dias"), "turno"
    if not has_month:
        listed = _DEPOIS_DO_TURNO.search(plano) if _LISTA_DEPOIS.search(plano) is not None else None
        if listed is not None and len(_NUMERO.findall(listed["dias"])) > 1:
            return *listed.span("dias"), "semana"
        found = _DIA_DA_SEMANA.match(plano)
        return None if found is None else (*found.span("dias" if found["dias"] else "so"), "semana")
    for pattern in (_DEPOIS_DO_TURNO, _NO_FIM, _SO_DIAS, _MES_E_LISTA):
        if (found := pattern.search(plano)) is not None:
            return *found.span("dias"), "lista"
    if (found := _DIA_DA_SEMANA.match(plano)) is not None:
        return *found.span("dias" if found["dias"] else "so"), "semana"
    return None


def _com_mes(line: Linha, start: int, end: int, month: int) -> Linha:
    for each in reversed([*_NUMERO.finditer(line.plano, start, end)]):
        line = line.com(each.end(), f"/{month:02d}")
    return line


__all__ = ["Meses", "dia_do_mes", "dito", "reescrever"]
