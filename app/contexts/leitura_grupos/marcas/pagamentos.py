"""Find how a shift is paid: the form of contract (such as PJ or CLT), when payment is due, and the means of payment
(such as Pix).
"""

import re
from collections.abc import Iterator, Sequence
from operator import attrgetter

from app.contexts.leitura_grupos.marcas.marca import Marca, Pagamento
from app.contexts.leitura_grupos.texto.texto import achados

_REGIME = re.compile(
    r"\b(?:(?P<dois>pj {0,2}(?:/|ou|e) {0,2}pf|pf {0,2}(?:/|ou|e) {0,2}pj)|(?P<um>pj|pf|rpa|scp|clt)"
    r"|pessoa (?P<pessoa>juridica|fisica))\b"
)
_ON_THE_SPOT = re.compile(
    r"\b(?:a {0,2}vista|no ato|na h(?:ora|r)|ao sair|na saida|no (?:mesmo )?dia do plantao|no mesmo dia"
    r"|(?:no|ao) (?:fim|final|termino) do plantao|(?:pix|pago|pagamento|pgto|pagto) "
    r"(?:(?:no|mesmo) dia|(?:ao|no) (?:fim|final|termino)(?! (?:do|de) mes)|imediato|na entrega))\b(?! \d)"
)
_DAYS = re.compile(
    r"(?P<n>\d(?<!\w\d)(?<!\bos \d)(?<!\bas \d)(?<!\bpelos \d)(?<!\bpor \d)(?:\d{0,2}(?= {0,2}dias\b)|\d?[05](?=d\b)))"
    r"(?: {0,2}dias|d)\b"
    r"(?! (?:gratis|uteis por|de (?:antecedencia|ferias|curso)))"
)
_DAY = re.compile(
    r"\b(?:pgto|pagto|pagamentos?|pagam?|pagamos|pago|receb[a-z]{1,8}|cai|repasses?|credita[a-z]{0,3}"
    r"|creditos?|deposita[a-z]{0,3}|deposito)[ :]{1,2}"
    r"(?:(?:todo|no|ate|o|em|na|conta|sempre|via|pix|cooperativa|empresa|pj|pf|rpa|scp) ){0,3}"
    r"dia (?P<n>\d{1,2})(?!\d| {0,2}/ {0,2}\d| {0,2}de [jfmasond][a-z]{2})"
    r"|\btodo dia (?P<t>\d{1,2})(?!\d| {0,2}/)|\bdia (?P<s>\d{1,2}) do mes\b"
    r"|\b(?:pj|pf|rpa|scp|pix)(?:,| ?[|/•-])?(?: no| todo| ate(?: o)?)? dia (?P<r>\d{1,2})(?= {0,2}(?:[.;\n]|$))",
    re.MULTILINE,
)
_PAID_ON = re.compile(
    r"\b(?:paga|pagam|pagamos|pago|recebe|cai|cair)(?: r?\$)? {0,2}\d[\d.,]{0,9}(?: reais)? "
    r"(?P<dia>(?:no |todo |ate o )?dia (?P<n>\d{1,2}))"
    r"(?!\d| {0,2}/ {0,2}\d| {0,2}de [jfmasond][a-z]{2})"
)
_WEEKDAY = re.compile(
    r"\b(?:pix|pgto|pagto|pagamento|cai|receb[a-z]{1,8}|deposito) (?:(?:na|no|toda|todo|em|proxima|sempre) ){0,2}"
    r"(?:(?:segunda|terca|quarta|quinta|sexta|sabado|domingo)(?: {0,2}-? {0,2}feira)?|amanha)\b"
)
# Matches the day until which a doctor sends the invoice: "nota até dia 5".
_INVOICE = re.compile(
    r"\b(?:notas?(?: fiscal)?|nfs?e?)(?: deve ser enviada)? (?:ate|no|todo) (?:o )?dia \d{1,2}(?!\d| ?/)"
)
_RHYTHM = re.compile(r"\b(?:(?P<s>semanal(?:mente)?)|(?P<q>quinzenal(?:mente)?)|(?P<m>mensal(?:mente)?))\b")
_PIX = re.compile(r"\bpix\b")
# Parts of words. A text that contains none of them names no day of payment and is not searched.
_PAYS = ("pag", "pgto", "pagto", "pix", "cai", "receb", "deposit")
_AT_ONCE = (
    "vista",
    " ato",
    "na h",
    " sair",
    "saida",
    "mesmo dia",
    "dia do plantao",
    "do plantao",
    "no dia",
    "imediato",
    " ao ",
    "entrega",
)
_inicio = attrgetter("inicio")
_NAMES = {"s": "semanal", "q": "quinzenal", "m": "mensal"}


def pagamentos(livre: str) -> tuple[list[Pagamento], list[Marca]]:
    """Return how and when a shift is paid: "pix", "cai dia 10" (paid on the 10th), "pix na segunda". The payment days
    are included, so that they are not read as days of shifts.
    """
    terms = [*_em_dias(livre)]
    found = [*_regimes(livre), *_prazos(livre), *terms, *_meios(livre)]
    found.sort(key=_inicio)
    weekdays = [Marca(each.start(), each.end()) for each in achados(_WEEKDAY, livre, *_PAYS)]
    weekdays += [Marca(each.start(), each.end()) for each in achados(_INVOICE, livre, "nota", "nf")]
    return found, [*terms, *weekdays]


def forma(found: Sequence[Pagamento]) -> str | None:
    parts = []
    for kind in ("regime", "prazo", "meio"):
        named = [each.valor for each in found if each.parte == kind]
        if kind == "regime" and {"PJ", "PF"} <= set(named):
            named = ["PJ/PF"]
        parts.extend(named[:1])
    return ", ".join(parts) or None


def _regimes(livre: str) -> Iterator[Pagamento]:
    for each in achados(_REGIME, livre, "pj", "pf", "rpa", "scp", "clt", "pessoa"):
        name = "PJ/PF" if each["dois"] else (each["um"] or ("pj" if each["pessoa"] == "juridica" else "pf")).upper()
        yield Pagamento(each.start(), each.end(), "regime", name)


def _prazos(livre: str) -> Iterator[Pagamento]:
    for each in achados(_ON_THE_SPOT, livre, *_AT_ONCE):
        yield Pagamento(each.start(), each.end(), "prazo", "à vista")
    for each in achados(_RHYTHM, livre, "nal", "sal"):
        yield Pagamento(each.start(), each.end(), "prazo", _NAMES[each.lastgroup or "m"])


def _em_dias(livre: str) -> Iterator[Pagamento]:
    """Yield when a shift is paid: "30 dias", "cai dia 10"."""
    for each in achados(_DAYS, livre, "dias", "0d", "5d"):
        yield Pagamento(each.start(), each.end(), "prazo", f"{int(each['n'])} dias")
    for each in achados(_DAY, livre, "dia"):
        yield Pagamento(
            each.start(), each.end(), "prazo", f"dia {int(each['n'] or each['t'] or each['s'] or each['r'])}"
        )
    for each in achados(_PAID_ON, livre, *_PAYS):
        yield Pagamento(*each.span("dia"), "prazo", f"dia {int(each['n'])}")


def _meios(livre: str) -> Iterator[Pagamento]:
    for each in achados(_PIX, livre, "pix"):
        yield Pagamento(each.start(), each.end(), "meio", "pix")
