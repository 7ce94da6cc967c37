"""Check the language model's answer against the message. Fields that the message does not support are dropped.

A name must occur in the message, and a day must follow from words in the message. A price, an hour or a phone number is
accepted only if the rules also read the same characters as a price, an hour or a phone number, so that the digits of a
date never become a price. A vacancy without a valid place and day is dropped.
"""

import re
from collections.abc import Mapping
from datetime import date, time, timedelta
from decimal import Decimal
from typing import Any, Final

from app.contexts.leitura_grupos.api import (
    Campo,
    Categoria,
    Leitura,
    Periodo,
    Texto,
    VagaLida,
    ValorTipo,
    Vocabulario,
    chave,
    folha,
)
from app.contexts.nomes.api import pode_ser_nome
from batuta.kernel import Json

# Confidence of a field that the model read. A field that a rule read has more confidence, because its words in the text
# are known.
SURE: Final = 0.8
MOST: Final = 60
AHEAD: Final = timedelta(days=14)
PADRAO: Final = "Clínica Médica"
_RELATIVE: Final = {"hoje": 0, "amanha": 1, "depois de amanha": 2}
_WEEKDAYS: Final = {"segunda": 0, "terca": 1, "quarta": 2, "quinta": 3, "sexta": 4, "sabado": 5, "domingo": 6,
                    "seg": 0, "ter": 1, "qua": 2, "qui": 3, "sex": 4, "sab": 5, "dom": 6}  # fmt: skip
_MONTHS: Final = ("jan", "fev", "mar", "abr", "mai", "jun", "jul", "ago", "set", "out", "nov", "dez")
_PRICE: Final = re.compile(r"(\d{1,3}(?:\.\d{3})+|\d{1,6})(?:,(\d{1,2}))?\s{0,3}(k|mil)?\b", re.IGNORECASE)


def _nullable(kind: str) -> dict[str, Any]:
    return {"type": [kind, "null"]}


_VAGA: Final[dict[str, Any]] = {
    "hospital": {"type": "string"}, "cidade": _nullable("string"), "uf": _nullable("string"), "especialidade": _nullable("string"),
    "data": {"type": "string"}, "data_texto": {"type": "string"},
    "periodo": {"type": "string", "enum": [each.value for each in Periodo]},
    "hora_inicio": _nullable("string"), "hora_fim": _nullable("string"), "valor": _nullable("number"),
    "valor_texto": _nullable("string"), "contato_nome": _nullable("string"), "contato_whatsapp": _nullable("string"),
}  # fmt: skip
SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "additionalProperties": False,
    "required": ["eh_oferta", "confianca", "vagas"],
    "properties": {
        "eh_oferta": {"type": "boolean"},
        "confianca": {"type": "number"},
        "vagas": {
            "type": "array",
            "items": {"type": "object", "additionalProperties": False, "required": list(_VAGA), "properties": _VAGA},
        },
    },
}


def verificada(documento: Json, texto: str, hoje: date, vocabulario: Vocabulario) -> Leitura | None:
    """Check a language model's answer about a message, and return the fields that the message supports. Return None if
    the answer has the wrong form. ``hoje`` is the day on which the message was sent.
    """
    match documento:
        case {"eh_oferta": bool(is_offer), "confianca": int() | float() as sure, "vagas": list(listed)}:
            confianca = float(min(max(sure, 0), 1))
        case _:
            return None
    if not is_offer:
        return Leitura(False, confianca, Categoria.CONVERSA, "modelo")
    page = _Pagina(texto, hoje, vocabulario)
    made = [vaga for each in listed[:MOST] if isinstance(each, Mapping) and (vaga := page.vaga(each)) is not None]
    apart = {(v.hospital.valor, v.data.valor, v.periodo.valor, v.especialidade.valor): v for v in made}
    return Leitura(True, confianca, Categoria.OFERTA, "modelo", tuple(apart.values()))


class _Pagina:
    """A message and the values that the rules find in it, against which the model's answer is checked."""

    def __init__(self, texto: str, hoje: date, vocabulario: Vocabulario) -> None:
        self._texto = texto
        self._plain = f" {chave(texto)} "
        marks = folha(Texto.de(texto, vocabulario.grafias), hoje, vocabulario, None)
        self._phones = {each.fone.numero for each in marks.contatos if each.fone is not None}
        self._hours = {hour for each in marks.turnos for hour in (each.das, each.ate) if hour is not None}
        self._prices = {each.reais for each in marks.precos}
        self._hoje = hoje
        self._vocabulario = vocabulario

    def vaga(self, said: Mapping[str, Any]) -> VagaLida | None:
        hospital, day = self._name(said.get("hospital")), self._day(said.get("data"), said.get("data_texto"))
        try:
            periodo = Periodo(str(said.get("periodo")))
        except ValueError:
            return None
        if hospital is None or day is None or not pode_ser_nome(hospital.valor)[0]:
            return None
        valor = self._price(said.get("valor"), said.get("valor_texto"))
        area = said.get("especialidade")
        canonical = self._vocabulario.especialidades.valor(area) if isinstance(area, str) else None
        return VagaLida(
            hospital,
            Campo(canonical or PADRAO, None, SURE),
            day,
            Campo(periodo, None, SURE),
            cidade=self._name(said.get("cidade")),
            hora_inicio=self._hour(said.get("hora_inicio")),
            hora_fim=self._hour(said.get("hora_fim")),
            valor=valor,
            valor_tipo=None if valor is None else Campo(ValorTipo.FIXO, valor.trecho, SURE),
            contato_nome=self._name(said.get("contato_nome")),
            contato_whatsapp=self._phone(said.get("contato_whatsapp")),
            # Each field was already checked against the message, so this value does not limit the import score.
            certeza=1.0,
        )

    def _name(self, said: object) -> Campo[str] | None:
        if not isinstance(said, str) or not chave(said) or f" {chave(said)} " not in self._plain:
            return None
        return Campo(said.strip(), self._place(said), SURE)

    def _day(self, said: object, words: object) -> Campo[date] | None:
        try:
            day = date.fromisoformat(str(said))
        except ValueError:
            return None
        place = self._place(words) if isinstance(words, str) else None
        if place is None or day < self._hoje or not self._follows(day, chave(str(words))):
            return None
        return Campo(day, place, SURE)

    def _follows(self, day: date, words: str) -> bool:
        """Return whether words in a message mean the given day: they contain its numbers, or name it relative to the
        day of the message, such as "amanhã" (tomorrow).
        """
        numbers = [int(each) for each in re.findall(r"\d{1,4}", words)]
        if numbers:
            months = [n for n, name in enumerate(_MONTHS, start=1) if re.search(rf"\b{name}", words)]
            has_month = day.month in (*numbers[1:], *months) or (len(numbers) == 1 and not months)
            return has_month and (day.day in numbers or min(numbers) <= day.day <= max(numbers[:-1], default=0))
        ahead = day - self._hoje
        if words in _RELATIVE:
            return ahead.days == _RELATIVE[words]
        named = [_WEEKDAYS[word] for word in words.split() if word in _WEEKDAYS]
        return day.weekday() in named and ahead <= AHEAD

    def _price(self, said: object, words: object) -> Campo[Decimal] | None:
        if isinstance(said, bool) or not isinstance(said, int | float) or not isinstance(words, str):
            return None
        place = self._place(words)
        if place is None or not 100 <= said <= 50_000:
            return None
        written = {_amount(*each) for each in _PRICE.findall(words)}
        amount = Decimal(str(said))
        return Campo(amount, place, SURE) if amount in written & self._prices else None

    def _phone(self, said: object) -> Campo[str] | None:
        digits = re.sub(r"\D", "", said) if isinstance(said, str) else ""
        national = digits.removeprefix("55") if len(digits) > 11 else digits
        return Campo(f"55{national}", None, SURE) if f"55{national}" in self._phones else None

    def _hour(self, said: object) -> Campo[time] | None:
        try:
            hour = time.fromisoformat(str(said))
        except ValueError:
            return None
        return Campo(hour, None, SURE) if hour in self._hours else None

    def _place(self, said: str) -> tuple[int, int] | None:
        text, wanted = self._texto.lower(), said.strip().lower()
        if len(text) != len(self._texto):  # lower() changed the length, so positions would not match
            text, wanted = self._texto, said.strip()
        start = text.find(wanted) if wanted else -1
        return None if start < 0 else (start, start + len(said.strip()))


def _amount(whole: str, cents: str, thousand: str) -> Decimal:
    amount = Decimal(f"{whole.replace('.', '')}.{cents or '0'}")
    return amount * 1000 if thousand else amount
