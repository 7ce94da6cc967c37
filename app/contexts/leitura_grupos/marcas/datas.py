"""Find days: dates, lists, ranges, weekdays, and relative days such as "amanhã" (tomorrow), which depend on the day
when the message was sent.
"""

import re
from calendar import monthrange
from collections.abc import Iterator
from datetime import date, timedelta
from itertools import islice
from operator import itemgetter

from app.contexts.leitura_grupos.marcas.marca import TOMADO, Dia, Dias
from app.contexts.leitura_grupos.texto.texto import MES, MESES, achados, e_mes
from batuta.kernel import dataclass

PASSADO = timedelta(days=60)
LONGE = 62
_MESES = ("jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez")
_SEMANA = {"seg": 0, "ter": 1, "qua": 2, "qui": 3, "sex": 4, "sab": 5, "dom": 6}
_MES = rf"{MES}\b"
_WD = (
    r"(?:(?:segunda|terca|quarta|quinta|sexta)s?(?: {0,2}-? {0,2}feiras?)?\b|sabad(?:o|ao)s?\b|domingo?s?\b"
    r"|[2-6]\.?a(?: {0,2}-? {0,2}feiras?\b|s?f\b|(?=:? {1,4}(?:[dnmt]|sd|sn|manha|tarde|noite|diurno|noturno)\b)"
    r"|(?= {1,2}(?:0[1-9]|[12]\d|3[01])\b(?! ?[h:])))"
    r"|(?:seg|ter|qua|qui|sex|sab|dom)\b\.?)"
)
# Words and numbers that begin days. The pattern begins with a set of characters, because a search for a set is much
# faster than a search for alternatives.
_START = re.compile(
    r"[\dadfhqst](?:(?<![\w$].)(?:(?:(?<=s)egunda|(?<=t)erca|(?<=q)uarta|(?<=q)uinta|(?<=s)exta)s?(?: {0,2}-? {0,2}feiras?)?\b"
    r"|(?<=s)abad(?:o|ao)s?\b|(?<=d)omingo?s?\b"
    r"|(?<=[2-6])\.?a(?: {0,2}-? {0,2}feiras?\b|s?f\b|(?=:? {1,4}(?:[dnmt]|sd|sn|manha|tarde|noite|diurno|noturno)\b)"
    r"|(?= {1,2}(?:0[1-9]|[12]\d|3[01])\b(?! ?[h:])))"
    r"|(?:(?<=s)e[gx]|(?<=t)er|(?<=q)u[ai]|(?<=s)ab|(?<=d)om)\b\.?|(?<=d)ias?\b)"
    r"|(?<=\d)(?<![\w.,$:/-].)\d?(?=o? {0,2}(?:[/.,;e&+(a✔✅☑-]|o |de "
    r"|p(?:ara|ra|/) |[jfmsond]|(?:ter|qua|qui)(?:\b|ca|rta|nta)| ?\d{1,2} (?:e |\d{1,2} (?:e |\d))))"
    r"|(?<!\w.)(?:(?<=h)(?:oje|j)|(?<=a)(?:manha|mnh|manh)|(?<=d)epois de amanha"
    r"|(?<=f)(?:(?:im|inal|ins|inais) de semana|ds|indi|eriad(?:o|ao)s?))\b)"
)
_ELEMENT = re.compile(
    rf"(?:(?P<antes>{_WD})[ ,(:.*_-]{{0,4}})?(?P<dia>dias? {{0,2}}:? {{0,2}})?(?P<d>\d{{1,2}})(?!\d)(?:(?<=\b1)o)?"
    r"(?!o\b|a:? {1,4}(?:[dnmt]|s[dn]|manha|tarde|noite|diurno|noturno)\b|a {1,2}(?:0[1-9]|[12]\d|3[01])\b)(?:"
    r" {0,2}/ {0,2}(?P<m>\d{1,2})(?: {0,2}/ {0,2}(?P<a>\d{4}|\d{2})(?!\d|[h:]| {1,2}h| ?- ?\d))?(?![\d/])"
    r"|\.(?P<mp>[01]\d)(?:\.(?P<ap>\d{4}|\d{2}))?(?!\d| {0,2}(?:mil|k)\b)"
    r"|-(?P<mt>[01]?\d)-(?P<at>\d{4}|\d{2})(?!\d)"
    rf"| {{0,2}}(?:de |/|-)? {{0,2}}(?P<mes>{_MES})(?: {{0,2}}(?:de |/) {{0,2}}(?P<am>\d{{4}}))?"
    rf")?(?!\.\d|,\d\d|\d|,\d ?(?:k|mil)\b)"
    # In "ter 07, qui 09", "qui" belongs to the next day.
    rf"(?(antes)|(?:(?!\. {{0,2}}{_WD} \d{{1,2}}(?: ?/ ?\d|\b(?! ?[h:x]| as)))"
    rf"(?!, ?{_WD} \d{{1,2}}\b(?! ?[h:x/] ?\d|-\d| ?h| as))"
    rf"(?:(?(m)[ ,(.*_-]|[ ,(:.*_-])){{0,4}}(?P<depois>{_WD}))?)\)?"
)
_WEEKDAY = re.compile(
    rf"(?P<toda>tod[ao]s?(?: [ao]s)? )?(?P<wd>{_WD})(?: (?:agora|q(?:ue)? vem|proxim[ao]))?(?: de (?P<mes>{_MES}))?"
)
_RELATIVE = re.compile(r"(?:(?P<hoje>hoje|hj)|(?P<depois>depois de amanha)|(?P<amanha>amanha|amnh|amanh))\b")
_GOOD_FRIDAY = re.compile(r"sex(?:ta)?(?:[- ]feira)? (?:santa|da paixao)\b")
_BOTH_DAYS = re.compile(r"amanha e depois\b(?! d)(?: de amanha)?")
_WEEKEND = re.compile(r"(?:f(?:im|inal|ins|inais) de semana|fds|findi)\b")
_HOLIDAY = re.compile(r"feriad(?:o|ao)s?\b(?: (?:naciona(?:l|is)|municipal|estadual)\b)?")
_SEP = re.compile(
    r"[ *_]{0,3}(?:(?P<lista>[,;&+/|] {0,2}(?:e\b)?|\be\b|\bou\b)|(?P<faixa>\bate\b|\bao\b|\ba\b|-))"
    r"[ *_]{0,3}(?:(?:o|os|no|nos|na|nas|de|do|o dia) )?"
)
# Matches days of a list without commas: "22 23 e 24 de junho".
_NEXT_DAY = re.compile(rf" (?=\d{{1,2}} (?:\d{{1,2}} )?(?:\d{{1,2}} )?(?:\d{{1,2}} )?(?:e \d{{1,2}}\b|(?:de )?{_MES}))")
# Matches the words between the days on which a night begins and ends: "10 para 11/08", "segunda (10/08) para terça".
_INTO = re.compile(rf" (?:para|pra|p/) ?(?:o |a )?(?:{_WD} \(?)?(?=(?P<d>\d{{1,2}})(?: ?/|\)))")
# Words after which a number is not a day: "12 horas".
_UNIT = re.compile(
    r" {0,2}(?:h(?:s|rs|oras?)?\b|[%x:]|k\b|mil\b|reais|vagas?\b|plant|medic|clinic|pediatr|leitos|anos|min\b|dias\b|por\b)"
)
_CLOSED = re.compile(
    r" {0,8}(?:[,;:)(/|\n.\x01>*_+&✔✅☑☀🌞🌙🌛🌜🌚-]|$|(?:e|a|ate|ao|ou|o dia|de|das|agora|com|no|na"
    r"|sd|sn|dia|noite|manha|tarde|diurno|noturno|cinderela|[dnmt])\b)"
)
_HOURISH = re.compile(
    r" {0,2}(?:h\b|:\d|(?:-|/|x|\bas\b|\ba\b|\bate\b) {0,2}\d{1,2}(?: {0,2}h|:\d"
    r"|\b(?! {0,2}/ {0,2}\d{1,2}(?!\d|[.,]\d)| {0,2}de\b|[.,]\d)))"
)
_HOURS_NEXT = re.compile(r" {1,2}(?:r?\$|\d{1,2}(?:h\d{0,2}|:\d\d)? ?(?:-|/|x|as|a) ?\d{1,2}(?:h|:\d\d)?(?![\d/]))")
_THEN_HOURS = re.compile(
    r"(?: {1,2}[-:] {1,2}|, )(?:d?as )?\d{1,2}(?:h\d{0,2}|:\d\d)? {0,2}(?:-|as|a|ate) {0,2}"
    r"(?:as )?\d{1,2}(?:h|:\d\d|\b)(?! ?/ ?\d{1,2}(?!\d))"
)
# Matches the length of a shift and its part of the day behind a day: "sáb 07 - 12h noite".
_LENGTH_NEXT = re.compile(
    r" ?- ?(?:24 ?h(?:s|rs|oras)?\b|(?:6|12) ?h(?:s|rs|oras)? ?\(?"
    r"(?:de |da |do |a )?(?:dia|noite|manha|tarde|diurn|noturn|s[dn]\b))"
)
_MONTH_SOON = re.compile(
    rf" {{0,2}}(?:-|a|ate|ao) {{0,2}}\d{{1,2}} {{0,2}}(?:/ {{0,2}}\d{{1,2}}(?!\d|[.,]\d)|\.\d\d\b|de {_MES}|{_MES})"
)
_LETTER_NEXT = re.compile(r" {1,2}[dn](?:(?: ?[/+,] ?| e | )[dn])?(?= {0,2}(?:\n|$|[^\w\s]))")
_HOURS = re.compile(r" {0,2}h(?:s|rs|oras)?\b")
_NEXT_WEEK = re.compile(r"\bsemana (?:q(?:ue)? vem|proxima)\b|\bproxima semana\b")
_MONTH_ALONE = re.compile(
    r"(?P<mes>[jfmasond](?<!\w.)(?<!\d .)(?<!\d de .)(?<!rio de .)(?<!ate .)(?<!/.)"
    rf"(?:{'|'.join(f'(?<={each[0]}){each[1:]}' for each in (*MESES, *_MESES))})\b)"
)
_UNTIL = re.compile(r"\bate (?:as )?\d{1,2}(?::\d\d)? ?(?:h\d{0,2}|horas)? de $")
# Matches the hours before the day on which a shift ends: "das 19h às 7h de", "das sete da noite às sete da manhã de".
_HOUR = r"(?:\d{1,2}(?:h\d{0,2}|:\d\d)?|[a-z]{3,9})(?: horas)?(?: da (?:manha|tarde|noite|madrugada))?"
_ENDS_ON = re.compile(rf"\b(?:das?|de) {_HOUR} (?:ate )?as {_HOUR} d[eoa] $")
# Matches a number of doctors before a weekday: "2 sexta".
_COUNT = re.compile(rf"[1-9] {_WD}")
_ENDS_NEXT = re.compile(rf"\b(?:ate )?as {_HOUR} d[eoa] $")
# Matches the text before a weekday that ends a range of days with one price: "1.300 até quinta".
_PRICE_UNTIL = re.compile(r"[\dk] (?P<ate>ate) (?:a |o )?$")
_ORD = r"(?:[1-5]o|primeir[oa]|segund[oa]|terceir[oa]|quart[oa]|quint[oa]|ultim[oa])"
# Matches ordinals before a weekday: "1º domingo", "segundo e terceiro sábado". The month follows the weekday.
_ORDINALS = re.compile(rf"\b(?P<lista>{_ORD}(?:(?:, | e | ?/ ?|, e ){_ORD}){{0,3}}) $")
_ORDINAL = re.compile(rf"[1-5]o(?:(?:, | e | ?/ ?){_ORD}){{0,3}} {_WD} de {_MES}")
_FIRST = {"1": 1, "pri": 1, "2": 2, "seg": 2, "3": 3, "ter": 3, "4": 4, "qua": 4, "5": 5, "qui": 5, "ult": -1}
_EVERY = re.compile(r"\btod[ao]s?(?: [ao]s)? $")
_SHIFT_SOON = re.compile(r"[ :>✔✅☑-]{0,4}(?:sd|sn|diurno|noturno|cinderela|manha|tarde|noite|dia)\b(?! \d)")
_AFTER_PLACE = re.compile(rf"{TOMADO}[*_]{{0,2}}: {{0,2}}$")
_DAY_AND_MONTH = re.compile(r"\d ?/ ?(0?[1-9]|1[0-2])(?![\d/])")
_WEEK_OF = re.compile(
    r"\bsemana (?:\d ?[(:-] ?|d[eo] (?:dia )?|\(|: ?|(?=\d{1,2}(?: ?/ ?\d{1,2})? ?(?:a|ate|-|e) ))(?=\d)"
)
# Matches the first and the last day of a week at the end of a heading: "Furos UPA Norte 13 a 19/04".
_SEVEN_DAYS = re.compile(
    r"(?<![\d/])(?P<de>\d{1,2})(?: ?/ ?\d{1,2})? ?(?:a|ate|-) ?(?P<a>\d{1,2}) ?/ ?\d{1,2}(?![\d/])[ *_:)]{0,4}(?=\n)"
)
_THIS_WEEK = re.compile(r"\b(?:n?ess[ae]|n?est[ae]|d?ess[ae]|d?est[ae]) semana\b")
_SINCE = re.compile(r"[ ,(]{0,3}a partir d[eo] (?:dia )?")


# A text without a match of this faster pattern has no date with a dash.
_DASH = re.compile(r"\d-[01]\d")
_DASHED = re.compile(r"(?<![\d/-])\d\d-(0[1-9]|1[0-2])(?:(?: {0,2}[,;/] {0,2}| {0,2}e {0,2})\d\d-\1(?![\d-])){1,20}")


# Matches a date with a dash before the hours of its shift: "12-08 / 7-19", "19-08 (qua) 19h às 7h".
_DASHED_BEFORE_HOURS = re.compile(
    rf"(?<![\d/.-])\d\d-(?:0[1-9]|1[0-2])(?=[ ,/|()-]{{1,4}}(?:{_WD}[ ,/|()-]{{1,4}})?"
    r"\d{1,2}(?:h(?:\d\d)?|:\d\d)? ?(?:-|/|as|a|ate) ?\d{1,2}(?:h|:\d\d)?(?![\d/-]))"
)


def com_barras(livre: str) -> str:
    """Replace dashes by slashes in lists of days such as "08-04 e 10-04", and in dates before hours such as "12-08
    7-19". The length of the text does not change.
    """
    if "-" not in livre or _DASH.search(livre) is None:
        return livre
    for pattern in (_DASHED, _DASHED_BEFORE_HOURS):
        livre = pattern.sub(lambda found: found[0].replace("-", "/"), livre)
    return livre


@dataclass(slots=True, unsafe_hash=True)
class _Elemento:
    inicio: int
    fim: int
    dia: int
    mes: int | None
    ano: int | None
    semana: int | None  # the weekday next to the number
    firme: bool  # True for "dia 12" and "seg 12", which are days even without a month
    liga: str  # how the element is joined to the previous one: "" (not), "lista" (list), "faixa" (range) or "fim" (end of a night)


@dataclass(frozen=True, slots=True)
class Calendario:
    """Finds the days in one message."""

    hoje: date
    semanas: tuple[tuple[int, date | None], ...] = ()  # each week that the text names: position and Monday
    mes: int | None = None
    livre: str = ""

    @classmethod
    def de(cls, livre: str, hoje: date) -> "Calendario":
        named = {
            _month(each["mes"]) for each in achados(_MONTH_ALONE, livre, *_MESES) if e_mes(livre, *each.span("mes"))
        }
        month = named.pop() if len(named) == 1 else None
        return cls(hoje, tuple(cls(hoje)._semanas_ditas(livre)), month, livre)

    def _semanas_ditas(self, livre: str) -> list[tuple[int, date | None]]:
        """Return the weeks that the text names: "semana que vem" (next week), "semana de 27/04" (week of 27 April), or a
        range of seven days from a Monday on: "furos 13 a 19/04". The Monday of "essa semana" (this week) is None.

        If the text names only one week, it applies to the whole text, even to the weekdays before it.
        """
        found: list[tuple[int, date | None]] = []
        if "semana" in livre:
            said = ((each.start(), self._segunda(livre, each.end())) for each in islice(_WEEK_OF.finditer(livre), 12))
            found = [each for each in said if each[1] is not None]
            coming = self.hoje + timedelta(days=7 - self.hoje.weekday())
            found += [(each.start(), coming) for each in islice(_NEXT_WEEK.finditer(livre), 12)]
            found += [(each.start(), None) for each in islice(_THIS_WEEK.finditer(livre), 12)]
        if not found and (week := _SEVEN_DAYS.search(livre)) is not None:
            first = self._segunda(livre, week.start("de"), so_segunda=True)
            if (int(week["a"]) - int(week["de"])) % 30 in (4, 6, 5) and first is not None:
                return [(0, first)]
        found.sort(key=itemgetter(0))
        return found if len({monday for _, monday in found}) > 1 else [(0, monday) for _, monday in found[:1]]

    def _segunda(self, livre: str, start: int, *, so_segunda: bool = False) -> date | None:
        """Return the Monday of the week that begins with the days at a position. Return None if these days are past.
        ``so_segunda`` means that the first of these days must be a Monday.
        """
        numbers = tuple(_run(livre, start))
        day = self._data(numbers, 0) if numbers else None
        if day is None or day < self.hoje or (so_segunda and day.weekday() != 0):
            return None
        return day - timedelta(days=day.weekday())

    def ler(self, livre: str) -> Iterator[Dias]:
        at, last = 0, None
        while (start := _START.search(livre, at)) is not None:
            numbers = tuple(_run(livre, start.start()))
            if numbers and self._conta_medicos(livre, numbers[0]):
                at = start.start() + 1
                continue
            is_dated = any(each.mes is not None or each.firme for each in numbers) or self._listados(livre, numbers)
            found = self._numeros(numbers) if is_dated else None if numbers else self._palavra(livre, start.start())
            end = numbers[-1].fim if numbers else found.fim if found is not None else 0
            at = max(start.end(), end)
            if found is None or livre.startswith(" passad", found.fim) or self._so_termina(livre, found, last):
                continue
            last = found.dias[-1].data if found.dias else None
            yield found

    def _conta_medicos(self, livre: str, each: _Elemento) -> bool:
        """Return whether a number before a weekday counts doctors, as in "1 sexta noite e 2 sábado dia". Such a number has
        one digit, and the next day of the month with this number falls on another weekday.
        """
        if each.semana is None or each.mes is not None or each.dia > 9 or _COUNT.match(livre, each.inicio) is None:
            return False
        month = (
            self.hoje.replace(day=1) if each.dia >= self.hoje.day else (self.hoje.replace(day=1) + timedelta(days=31))
        )
        said = _make_date(month.year, month.month, each.dia)
        return self.mes is None and said is not None and said.weekday() != each.semana

    def _so_termina(self, livre: str, found: Dias, last: date | None) -> bool:
        """Return whether a shift only ends on this day, as on the 12th in "11/09, das 19h às 7h do dia 12/09"."""
        if last is None or len(found.dias) != 1 or found.dias[0].data - last != timedelta(days=1):
            return False
        return _ENDS_NEXT.search(livre, max(0, found.inicio - 40), found.inicio) is not None

    def _listados(self, livre: str, numbers: tuple[_Elemento, ...]) -> bool:
        """Return whether numbers without a month are days.

        Several numbers are days if a shift follows them, or if a hospital and a colon precede them. If the message
        names one month, there are two more cases: several numbers in brackets, and a number of two digits at the start
        of a line with a shift after it.
        """
        if not numbers:
            return False
        start, end = numbers[0].inicio, numbers[-1].fim
        has_shift = _SHIFT_SOON.match(livre, end) is not None
        if len(numbers) > 1 and (has_shift or _AFTER_PLACE.search(livre, max(0, start - 5), start)):
            return True
        if self.mes is None:
            return False
        if len(numbers) > 1:
            return livre[max(0, start - 1) : start] == "(" and ")" in livre[end - 1 : end + 1]
        return has_shift and end - start == 2 and livre[max(0, start - 1) : start] in ("", "\n")

    def _palavra(self, livre: str, at: int) -> Dias | None:
        """Read days that a word names: "amanhã", "fim de semana", or a weekday."""
        if (both := _BOTH_DAYS.match(livre, at)) is not None:
            return Dias(at, both.end(), tuple(Dia(at, both.end(), self.hoje + timedelta(days=away)) for away in (1, 2)))
        if (near := _RELATIVE.match(livre, at)) is not None:
            if _UNTIL.search(livre[max(0, at - 20) : at]):
                return None
            away = 0 if near["hoje"] else 2 if near["depois"] else 1
            return Dias(at, near.end(), (Dia(at, near.end(), self.hoje + timedelta(days=away)),))
        if (weekend := _WEEKEND.match(livre, at)) is not None:
            saturday = Dia(at, weekend.end(), self._semana(5, at))
            sunday = Dia(at, weekend.end(), saturday.data + timedelta(days=1))
            return Dias(at, weekend.end(), (saturday, sunday), frozenset((5, 6)), True)
        if (holiday := _HOLIDAY.match(livre, at)) is not None:
            if livre.endswith(("sem ", "nao e ", "nao "), 0, at):
                return None
            return Dias(at, holiday.end(), (), solto=True, feriado=True)
        return self._dias_da_semana(livre, at)

    def _dias_da_semana(self, livre: str, at: int) -> Dias | None:
        matches: list[tuple[re.Match[str], list[int]]] = []
        weekdays: list[int] = []
        before, end = "", at
        while (each := _WEEKDAY.match(livre, at)) is not None and not _GOOD_FRIDAY.match(livre, at):
            if not matches and (not _is_weekday(livre, each) or livre.startswith(" passad", each.end())):
                return None
            named = [_SEMANA[each["wd"][:3]]] if not each["wd"][0].isdigit() else [int(each["wd"][0]) - 2]
            if before == "faixa" and weekdays:
                named = [day % 7 for day in range(weekdays[-1] + 1, named[0] + (1 if named[0] > weekdays[-1] else 8))]
            weekdays += named
            matches.append((each, named))
            end = each.end()
            if (until := _PRICE_UNTIL.search(livre, max(0, each.start() - 14), each.start())) is not None:
                until_then = [Dia(each.start(), end, self._semana(day, at)) for day in range(named[0] + 1)]
                return Dias(until.start("ate"), end, tuple(until_then), frozenset(range(named[0] + 1)), solto=True)
            step = _SEP.match(livre, end)
            if step is None or _WEEKDAY.match(livre, step.end()) is None or _is_dated(livre, step.end()):
                break
            before, at = ("faixa" if step["faixa"] else "lista"), step.end()
        if not matches or _ENDS_ON.search(livre, max(0, matches[0][0].start() - 70), matches[0][0].start()):
            return None
        month = next((each["mes"] for each, _ in matches if each["mes"]), None)
        days = [
            Dia(each.start(), each.end(), day) for each, named in matches for day in self._de(named, month, each, livre)
        ]
        first = days[0].inicio if days else at
        is_bare = month is None and self._mes_de_todas(matches[0][0], livre) is None
        return Dias(first, end, _unique(days), frozenset(weekdays), solto=is_bare)

    def _de(self, weekdays: list[int], month: str | None, said: re.Match[str], livre: str) -> Iterator[date]:
        """Yield the dates of weekdays in a month, from today on: "terças e quartas de março". If no month is named,
        yield each weekday's next date.
        """
        month = month or self._mes_de_todas(said, livre)
        if month is None:
            yield from (self._semana(each, said.start()) for each in weekdays)
            return
        first = self.hoje
        since = _SINCE.search(livre, said.end(), said.end() + 40)
        if since is not None and (number := _ELEMENT.match(livre, since.end())) is not None:
            start = _elemento(number, "")
            named = None if start is None else self._ano(start.dia, start.mes or _month(month), None)
            first = named or first
        year = self._ano(1, _month(month), None)
        if year is not None:
            last = monthrange(year.year, year.month)[1]
            days = [year.replace(day=number) for number in range(1, last + 1)]
            chosen = _escolhidos([day for day in days if day.weekday() in weekdays], livre, said.start())
            yield from (day for day in chosen if day >= first)

    def _mes_de_todas(self, said: re.Match[str], livre: str) -> str | None:
        """Return the month for a weekday after a word such as "todas" (all), even if other words separate the weekday
        from the month: "todas as sextas SN de agosto". Return None if there is no such word or no single month.
        """
        every = _EVERY.search(livre, max(0, said.start() - 12), said.start())
        return _MESES[self.mes - 1] if every is not None and self.mes is not None else None

    def _semana(self, weekday: int, at: int) -> date:
        """Return the next date of a weekday after today. If the message names a week ("semana que vem", "semana de
        27/04"), return the date in that week instead.
        """
        monday = next((monday for place, monday in reversed(self.semanas) if place <= at), None)
        if monday is not None:
            return monday + timedelta(days=weekday)
        return self.hoje + timedelta(days=(weekday - self.hoje.weekday() - 1) % 7 + 1)

    def _numeros(self, elements: tuple[_Elemento, ...]) -> Dias:
        days: list[Dia] = []
        passed = False
        for place, each in enumerate(elements):
            day = self._data(elements, place)
            if day is None or (each.liga == "fim" and days and day - days[-1].data == timedelta(days=1)):
                continue
            if each.liga == "faixa" and days:
                start, first = days[-1].data, elements[place - 1].inicio
                # A longer range is a misread number, such as the hours in "20.09.26 - 07/07".
                away = range(1, (day - start).days + 1) if (day - start).days <= LONGE else range(0)
                days.extend(Dia(first, each.fim, start + timedelta(days=count)) for count in away)
            else:
                days.append(Dia(each.inicio, each.fim, day))
        kept = _unique([each for each in days if each.data >= self.hoje])
        passed = bool(days) and not kept
        return Dias(elements[0].inicio, elements[-1].fim, kept, passou=passed)

    def _data(self, elements: tuple[_Elemento, ...], place: int) -> date | None:
        """Return the date of one day in a list of days. A day without a month takes the month of the next day that has
        one or, if there is none, of the previous day that has one.
        """
        each = elements[place]
        month, year = each.mes, each.ano
        if month is not None and year is None:
            dated = next((other for other in elements[place:] if other.ano is not None), None)
            if dated is not None and dated.ano is not None and dated.mes is not None:
                year = dated.ano if month <= dated.mes else dated.ano - 1
        if month is None:
            later = next((other for other in elements[place:] if other.mes is not None), None)
            earlier = next((other for other in reversed(elements[:place]) if other.mes is not None), None)
            if later is not None and later.mes is not None:
                month, year = later.mes, later.ano
                if each.dia > later.dia and elements[place + 1].liga == "faixa":
                    month, year = (month - 1, year) if month > 1 else (12, None if year is None else year - 1)
            elif earlier is not None and earlier.mes is not None:
                month, year = earlier.mes, earlier.ano
        if month is None and self.mes is not None:
            month = self.mes
        return self._dia_solto(each) if month is None else self._ano(each.dia, month, year)

    def _dia_solto(self, each: _Elemento) -> date | None:
        """Return the next date for a day that is stated without a month. If the text also names a weekday, and that
        date falls on another weekday, try the other months that the message names: "segunda 07/09 e terça dia 8".
        """
        month = self.hoje.replace(day=1)
        if each.dia < self.hoje.day:
            month = (month + timedelta(days=31)).replace(day=1)
        found = _make_date(month.year, month.month, each.dia)
        if each.semana is None or (found is not None and found.weekday() == each.semana):
            return found
        months = {int(said[1]) for said in islice(_DAY_AND_MONTH.finditer(self.livre), 60)}
        others = (self._ano(each.dia, number, None) for number in sorted(months))
        return next((day for day in others if day is not None and day.weekday() == each.semana), found)

    def _ano(self, day: int, month: int, year: int | None) -> date | None:
        if year is not None:
            return _make_date(year + 2000 if year < 100 else year, month, day)
        this = _make_date(self.hoje.year, month, day)
        if this is not None and this >= self.hoje - PASSADO:
            return this
        return _make_date(self.hoje.year + 1, month, day) if this is not None or month < self.hoje.month else None


def _run(livre: str, at: int) -> Iterator[_Elemento]:
    """Yield the days of a list or range in a text, up to the first number that cannot be a day."""
    link, count, listed, first = "", 0, False, at
    while (found := _ELEMENT.match(livre, at)) is not None:
        each = _elemento(found, link)
        if each is None or not (_is_day(livre, found, each, count) or (listed and _is_listed(livre, each))):
            return
        yield each
        listed = listed or found["dia"] is not None
        step = _SEP.match(livre, each.fim)
        if step is None and count == 0 and (into := _into(livre, each.fim, each.dia)) is not None:
            link, at, count = "fim", into.end(), count + 1
            continue
        if step is None and each.mes is None and (spaced := _NEXT_DAY.match(livre, each.fim)) is not None:
            link, at, count = "lista", spaced.end(), count + 1
            continue
        if step is None or count == LONGE or _closes(livre, first, each.fim):
            return
        link, at, count = ("faixa" if step["faixa"] else "lista"), step.end(), count + 1


def _elemento(found: re.Match[str], link: str) -> _Elemento | None:
    said, m, mp, mt, name, labelled, before, behind = found.group("d", "m", "mp", "mt", "mes", "dia", "antes", "depois")
    day, month = int(said), m or mp or mt
    if not 1 <= day <= 31:
        return None
    number = int(month) if month else _month(name) if name else None
    if number is not None and not 1 <= number <= 12:  # "dia 9 / 24h": the second number is not a month
        return _Elemento(found.start(), found.end("d"), day, None, None, None, True, link) if labelled else None
    year = None if number is None else found["a"] or found["ap"] or found["at"] or found["am"]
    firm = bool(labelled or before or behind)
    weekday = _SEMANA.get((before or behind or "")[:3])
    return _Elemento(found.start(), found.end(), day, number, int(year) if year else None, weekday, firm, link)


def _is_day(livre: str, found: re.Match[str], each: _Elemento, count: int) -> bool:
    if _ORDINAL.match(livre, found.start("d")):
        return False
    if each.mes is not None:
        return found["m"] is None or _HOURS.match(livre, found.end("m")) is None
    if found["dia"] or found["depois"]:
        return True
    if (count or found["antes"]) and each.liga != "faixa" and _THEN_HOURS.match(livre, found.end()):
        return True
    if found["antes"] and _LENGTH_NEXT.match(livre, found.end("d")):
        return True
    if _HOURISH.match(livre, found.end("d")) and _MONTH_SOON.match(livre, found.end("d")) is None:
        return False
    if _into(livre, found.end(), each.dia) is not None:
        return True
    return any(pattern.match(livre, found.end()) is not None for pattern in (_CLOSED, _NEXT_DAY))


def _closes(livre: str, start: int, end: int) -> bool:
    """Return whether a bracket before the first day of a list ends the list: "(10 a 14/08) e sábado 15/08"."""
    return livre[end - 1] == ")" and livre[max(0, start - 1) : start] == "(" and "(" not in livre[start:end]


def _into(livre: str, at: int, day: int) -> re.Match[str] | None:
    """Match the words between the days on which a night begins and ends, such as " para " in "10 para 11/08". The days
    must be consecutive. In "1 p/ sexta 04/09" they are not: there, the 1 is the number of doctors.
    """
    found = _INTO.match(livre, at)
    return found if found is not None and int(found["d"]) in (day + 1, 1) else None


def _is_listed(livre: str, each: _Elemento) -> bool:
    """Return whether a number without a month continues a list of days after the word "dias", such as the 28 in "dias
    27 e 28 temos vaga".
    """
    if each.liga != "lista" or _UNIT.match(livre, each.fim):
        return False
    return _HOURISH.match(livre, each.fim) is None and livre[each.fim : each.fim + 1] in (" ", "")


def _is_dated(livre: str, at: int) -> bool:
    """Return whether a number after a weekday is a day of the month. The 12 in "sex 12" is a day; the 12 in "sex 12h"
    is an hour.
    """
    found = _ELEMENT.match(livre, at)
    return found is not None and _HOURS.match(livre, found.end("d")) is None


def _is_weekday(livre: str, said: re.Match[str]) -> bool:
    """Return whether a word is a weekday. The ambiguous short forms "ter", "dom", "sex" and "seg" are weekdays only
    before a punctuation mark, a part of the day such as "noite", a number or a joining word such as "e".
    """
    word = said["wd"].rstrip(".")
    if word not in ("ter", "dom", "sex", "seg"):
        return True
    if _LETTER_NEXT.match(livre, said.end()) or _HOURS_NEXT.match(livre, said.end()):
        return True
    return _CLOSED.match(livre, said.end()) is not None or bool(_START.match(livre, said.end() + 1))


def _escolhidos(days: list[date], livre: str, at: int) -> list[date]:
    """Return the days that an ordinal before a weekday selects, such as the second Sunday for "2º domingo de maio".
    Without an ordinal, return all days.
    """
    said = _ORDINALS.search(livre, max(0, at - 60), at)
    if said is None:
        return days
    places = [_FIRST[each] for each in re.findall(r"[1-5]|pri|seg|ter|qua|qui|ult", said["lista"])]
    return [days[each - 1] if each > 0 else days[-1] for each in places if each <= len(days)]


def _month(word: str) -> int:
    return _MESES.index(word[:3]) + 1


def _make_date(year: int, month: int, day: int) -> date | None:
    if not 1 <= month <= 12 or not 1 <= day <= monthrange(year, month)[1]:
        return None
    return date(year, month, day)


def _unique(days: list[Dia]) -> tuple[Dia, ...]:
    return tuple({each.data: each for each in reversed(days)}.values())[::-1]
