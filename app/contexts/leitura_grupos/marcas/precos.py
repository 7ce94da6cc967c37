"""Find the prices of shifts. Years, phone numbers, hours and quantities are excluded."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from decimal import Decimal
from itertools import zip_longest

from app.contexts.leitura_grupos.marcas.marca import Combinar, Dias, Preco, entre
from app.contexts.leitura_grupos.texto.texto import Texto, achados
from app.contexts.leitura_grupos.texto.vocabulario import frases

MENOR, MAIOR, POR_HORA = Decimal(100), Decimal(50_000), Decimal(300)
_NUMBER = r"(?P<n>\d{1,3}(?:\.\d{3}){1,2}(?:,\d{1,2})?|\d{1,6}(?:[.,]\d{1,2})?)(?![\d])"
_TENS = {"cem": 100, "duzentos": 200, "trezentos": 300, "quatrocentos": 400, "quinhentos": 500, "seiscentos": 600}
_TENS |= {"setecentos": 700, "oitocentos": 800, "novecentos": 900}
_DECADES = ("vinte", "trinta", "quarenta", "cinquenta", "sessenta", "setenta", "oitenta", "noventa")
_SAID = rf"(?P<c>{'|'.join(_TENS)})(?: e (?P<d>{'|'.join(_DECADES)}))?"
_PRICE = re.compile(
    r"(?=[+\dr$b])(?<![\w.,/:$#])(?P<mais>\+ {0,2})?(?:\d{1,2} {0,2}x {0,2})?(?P<r>(?:r\$|\$|rs\b|brl\b)[ $:]{0,3})?"
    + _NUMBER
    + r"(?P<fim>[.,]00(?!\d))?(?: {0,2}(?P<mil>mil\b(?: (?:e )?(?:(?P<resto>\d{2,3})|"
    + _SAID
    + r")\b)?|k(?P<k>\d{1,3})?\b)"
    r"| {0,2}(?P<reais>reais|conto|contos|pila|pilas)\b)?"
    r"(?P<hora> {0,2}(?:/ {0,2}h(?:r|rs|s|ora)?\b|(?:(?:por|a|p/|cada|/) {0,2})?hora\b(?! extra)|\bh/?hora\b"
    r"| reais {0,2}/ {0,2}h\b))?"
)
_WORDS = re.compile(
    r"\b(?:(?P<m>dois|duas|tres|quatro|cinco) )?mil(?: (?:e )?" + _SAID + r")?\b"
    r"(?! {0,2}(?:habitantes|vezes|desculpas|anos))"
)
_HUNDREDS = re.compile(r"(?<!mil )(?<!mil e )\b(?!cem)" + _SAID + r" reais\b")
_UNITS = {"um": 1, "dois": 2, "duas": 2, "tres": 3, "quatro": 4, "cinco": 5, "seis": 6, "sete": 7, "oito": 8}
_TOTAL = re.compile(
    r"[ ,.(]{0,3}(?:total |no total )?(?:pel[oa]s?|por|para os|pros|nos) (?:(?P<n>\d{1,2}"
    r"|dois|duas|tres|quatro|cinco|seis|sete|oito)"
    r"(?: (?:plantoes|dias|noites|turnos|periodos|noturnos|diurnos|manhas|tardes|s[dn]s?)\b"
    r"|(?=[ ]{0,2}(?:[.,;!)\n]|$)))|(?P<fds>pacote|conjunto))"
)
_OF_SEVERAL = re.compile(r" {0,2}\((?P<n>\d{1,2}) (?:plantoes|dias|noites|turnos)\)")
# Matches a total with the number of shifts before it: "5 plantões, 7.000 no total".
_SEVERAL_BEFORE = re.compile(r"\b(?P<n>\d{1,2}) (?:plantoes|noites|turnos)[ ,:=(-]{1,4}(?:r?\$ ?)?$")
_IN_TOTAL = re.compile(r"[ ,(]{1,2}(?:no |ao )?(?:total|todo)\b")
_HOUR_BEFORE = re.compile(
    r"(?:\bhora|/ {0,2}h|\bhoras?/plantao)(?: (?:a|e|de|normal|feriado|semana|fds|noturna|diurna|extra|medica|sai|fica|paga))?"
    r"[ :=)*_-]{0,4}(?:r\$ {0,2})?$"
)
_NET = re.compile(r"[ (,]{0,2}(?:liquidos?|liq|livres?)\b")
_NET_BEFORE = re.compile(r"(?<!\d )\b(?:liquidos?|liq|livres?)[ :(]{0,2}$")
_EXTRA = re.compile(
    r" {0,2}(?:de |do |da |p/? |para |pra )?(?:o )?(?:deslocamento|combustivel|ajuda|bonus|adicional"
    r"|diaria (?:de )?hotel|transporte|gasolina|alimentacao|hospedagem|uber|pedagio)"
)
_EXTRA_BEFORE = re.compile(
    r"\b(?:deslocamento|combustivel|ajuda(?: de custo)?|bonus|adicional|transporte|gasolina|taxa|multa|anuidade)"
    r" {0,2}(?:de|:|-|=)? {0,2}$"
)
_NOT_MONEY = re.compile(
    r" {0,2}(?:%|km\b|leitos?\b|fichas?\b|pacientes?\b|atendimentos?\b|habitantes\b|vidas\b|m2\b|metros\b|vagas?\b|plantoes\b"
    r"|medicos?\b|horas\b|h\b|hs\b|anos?\b|dias\b|minutos?\b|min\b|cm\b|mg\b|ml\b|andar\b|o andar|x {0,2}\d"
    r"|/(?!(?:6|12|24) ?h)\d|-\d)"
)
_NOT_MONEY_BEFORE = re.compile(
    r"\b(?:crm|rqe|n(?=\.)|no|numero|num|rua|av|avenida|br|rodovia|km|sala|cep|cnpj|cpf|apto|quadra"
    r"|lote|andar|bloco|id|cod|codigo|ref|edital|lei)[ :.\-/]{0,3}$"
)
_FORMER = re.compile(r"\b(?:era|eram|estava|antes)(?: de| por| era)?[ :]{1,2}(?:r\$ {0,2})?$")
_PRESENT = re.compile(r"\b(?:agora|subiu|passou|foi|virou|aumentou)\b")
_CUE_BEFORE = re.compile(
    r"(?:\b(?:valor(?:es)?|pag(?:o|a|amos|am|ando|amento)|por|remuneracao|bruto|honorarios?|r\$|\$)|[:=|>💰💵💲-])[ :*_]{0,3}$"
)


# Matches pairs of prices: "1.800/2.000 (D/N)", "SD/SN 1.500/1.700".
_AMOUNT = r"(?:r\$ ?)?\d[\d.]{2,6}(?:,\d{1,2})?|\d,?\d{0,2}k"
_PAIR = r"[a-z\x01\x02]{1,8}\.? ?/ ?[a-z\x01\x02]{1,8}"
_SIDE_BY_SIDE = re.compile(rf"(?<=[\dk])/(?=(?:{_AMOUNT}) {{0,2}}\(?{_PAIR})")


_DENIED = re.compile(r"\bnao (?:e|sao|paga|pagam|sera)? ?mais (?:de )?(?:r\$ ?)?$")
_RAISED = re.compile(
    r"\b(?:subiu|aumentou|mudou|passou|corrigido|atualizado|reajustado)(?: o valor)? (?:para?|pra|p/?) ?(?:r\$ ?)?$"
)


def sem_substituidos(plano: str, found: list[Preco], days: Sequence[Dias]) -> list[Preco]:
    """Remove prices that the author takes back: "não é mais 1.300, agora 1.600", or "1.300", then "valor subiu para
    1.600". A new price for a single day replaces no other price.
    """
    if len(found) < 2:
        return found
    left = [each for each in found if not _DENIED.search(plano, max(0, each.inicio - 30), each.inicio)] or found
    for place, each in enumerate(left):
        raised = _RAISED.search(plano, max(0, each.inicio - 40), each.inicio)
        line = plano.rfind("\n", 0, each.inicio) + 1
        if raised and len({other.reais for other in left[:place]}) == 1 and not entre(days, line, each.inicio):
            return left[place:]
    return left


def precos(livre: str) -> list[Preco]:
    """Return prices in text order. If a price is a range, only its lower end is returned. Extra pay is ignored."""
    found: list[Preco] = []
    livre = _SIDE_BY_SIDE.sub("|", livre) if "/" in livre else livre
    for each in _PRICE.finditer(livre):
        price = _preco(livre, each)
        if price is None:
            continue
        if (found and _is_upper_end(livre, found[-1], price)) or (found and _is_sum(livre, found[-1], price)):
            continue
        found.append(price)
    found.extend(_por_extenso(livre))
    found.sort(key=lambda each: each.inicio)
    if any(each.por_hora for each in found):
        # A low price next to a price per hour is also per hour: "Valor hora: 122 (semana), 138 (sáb/dom)".
        found = [replace(each, por_hora=True) if each.reais < POR_HORA else each for each in found]
    return [each for each, after in zip_longest(found, found[1:]) if after is None or not _was(livre, each, after)]


def combinar(texto: Texto) -> list[Combinar]:
    words = texto.palavras
    known = [Combinar(words[each.inicio].inicio, words[each.fim - 1].fim) for each in frases("a_combinar").todas(words)]
    return known + [
        Combinar(each.start(), each.end())
        for each in achados(_INBOX, texto.plano, "pv", "privado", "inbox", "box", "direct", "combinar")
    ]


_INBOX = re.compile(
    r"\bvalor(?:es)?\b[a-z ,:]{0,20}\b(?:no|via|por|in|pelo|consultar|ver) ?(?:no |por )?(?:pv|privado|inbox|box|direct)\b|"
    r"\${1,3}[ :=-]{0,3}(?:inbox|pv|privado|a combinar|no pv)\b"
)


def _preco(livre: str, each: re.Match[str]) -> Preco | None:
    amount = _reais(each)
    if amount is not None and 1 <= amount < 10 and _is_alone(livre, each):
        amount *= 1000
    if amount is None or not 20 <= amount <= MAIOR:
        return None
    before = livre[max(0, each.start() - 30) : each.start()]
    after = livre[each.end() : each.end() + 40]
    marked = bool(each["r"] or each["mil"] or each["reais"])
    hourly = each["hora"] is not None or (_HOUR_BEFORE.search(before) is not None and amount < 1000)
    if amount < MENOR and not hourly:
        return None
    if _EXTRA.match(after) or _EXTRA_BEFORE.search(before):
        return None
    if not marked and not hourly and not _is_alone(livre, each) and not _is_bare_price(each, before, after, amount):
        return None
    total = _TOTAL.match(after) or (_OF_SEVERAL.match(after) if "total" in before[-12:] else None)
    shifts = 1
    if total is None and _IN_TOTAL.match(after) and (several := _SEVERAL_BEFORE.search(before)) is not None:
        shifts = int(several["n"])
    elif total is not None and total["n"]:
        shifts = _UNITS.get(total["n"]) or int(total["n"] if total["n"].isdigit() else 1)
    net = _NET.match(after) is not None or _NET_BEFORE.search(before) is not None
    start = each.start("r") if each["r"] else each.start("n")
    sure = marked or hourly or "." in each["n"] or _CUE_BEFORE.search(before) is not None
    return Preco(start, each.end(), amount, hourly, net, max(shifts, 1), each["mais"] is not None, sure)


_SHIFT_BEFORE = re.compile(r"(?:\bs[dn]|\x01) $")


def _is_alone(livre: str, each: re.Match[str]) -> bool:
    """Return whether a number such as "1.9" means thousands of reais. It does if it ends a line and is alone on the
    line or directly follows a shift.
    """
    before, after = livre[max(0, each.start() - 4) : each.start()], livre[each.end() : each.end() + 1]
    is_first = before[-1:] in ("", "\n") or _SHIFT_BEFORE.search(before) is not None
    return is_first and after in ("", "\n") and re.fullmatch(r"\d[.,]\d{1,2}", each["n"]) is not None


def _is_bare_price(each: re.Match[str], before: str, after: str, amount: Decimal) -> bool:
    digits = each["n"]
    if _NOT_MONEY.match(after) or _NOT_MONEY_BEFORE.search(before):
        return False
    if "," in digits and not digits.endswith((",00", ",50")):
        return False
    if "." in digits and len(digits.split(".")[-1]) != 3 and not digits.endswith(",00"):
        return False
    if digits.isdigit() and 2020 <= int(digits) <= 2035 and _CUE_BEFORE.search(before) is None:
        return False
    return amount >= 500 or _CUE_BEFORE.search(before) is not None or amount % 50 == 0


def _reais(each: re.Match[str]) -> Decimal | None:
    digits = each["n"]
    if each["mil"]:
        base = Decimal(digits.replace(",", ".")) if digits.count(".") + digits.count(",") <= 1 else None
        if base is None or base >= 60:
            return None
        return base * 1000 + Decimal(each["resto"] or (each["k"] or "").ljust(3, "0")) + _centena(each)
    whole = digits
    if re.fullmatch(r"\d{1,3}(?:\.\d{3})+(?:,\d{1,2})?", digits):
        whole = digits.replace(".", "").replace(",", ".")
    elif "," in digits:
        whole = digits.replace(",", ".")
    return Decimal(whole)


def _por_extenso(livre: str) -> Iterator[Preco]:
    for each in achados(_WORDS, livre, "mil"):
        if livre[max(0, each.start() - 2) : each.start()].strip()[-1:].isdigit():
            continue
        amount = 1000 * _UNITS.get(each["m"] or "um", 1) + _centena(each)
        if each["m"] or each["c"] or livre.startswith(" reais", each.end()):
            yield Preco(each.start(), each.end(), Decimal(amount))

    for each in achados(_HUNDREDS, livre, "reais"):
        yield Preco(each.start(), each.end(), Decimal(_centena(each)))


def _centena(each: re.Match[str]) -> int:
    """Return the hundreds and tens that are written in words: "duzentos e cinquenta"."""
    return _TENS.get(each["c"] or "", 0) + (10 * (_DECADES.index(each["d"]) + 2) if each["d"] else 0)


def _is_upper_end(livre: str, lower: Preco, upper: Preco) -> bool:
    """Return whether the second of two prices is the upper end of a range. "de 2.000 a 2.300" is read as 2.000."""
    between = livre[lower.fim : upper.inicio]
    before = livre[max(0, lower.inicio - 8) : lower.inicio]
    if re.fullmatch(r" {0,2}(?:a|ate) {0,2}(?:r?\$ {0,2})?", between):
        return True
    return re.fullmatch(r" {0,2}e {0,2}(?:r?\$ {0,2})?", between) is not None and before.endswith("entre ")


def _was(livre: str, former: Preco, present: Preco) -> bool:
    """Return whether the first of two prices is outdated because the second one replaces it: "era 1.500, agora é
    1.700".
    """
    before = livre[max(0, former.inicio - 20) : former.inicio]
    between = livre[former.fim : present.inicio]
    return len(between) <= 40 and bool(_FORMER.search(before)) and bool(_PRESENT.search(between))


def _is_sum(livre: str, one: Preco, total: Preco) -> bool:
    """Return whether the second of two prices is the total of several shifts at the first price: "2 x 1.500
    = 3.000".
    """
    between = livre[one.fim : total.inicio].replace("cada", "").strip()
    return between == "=" and total.reais > one.reais and total.reais % one.reais == 0
