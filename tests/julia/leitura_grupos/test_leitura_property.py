"""Every text can be read, and the position reported for each field contains the field."""

from datetime import date, datetime
from zoneinfo import ZoneInfo

from hypothesis import given, settings
from hypothesis import strategies as st

from app.contexts.leitura_grupos.api import Leitura, VagaLida, heuristica
from app.contexts.leitura_grupos.documento import trechos
from app.contexts.leitura_grupos.texto.texto import Texto, chave
from tests.julia.leitura_grupos.adversas import ADVERSAS
from tests.julia.leitura_grupos.exemplos import SEGUNDA, lida

ZONE = ZoneInfo("America/Sao_Paulo")
PIECES = st.sampled_from(
    (
        *ADVERSAS.values(),
        "HTN ",
        "UPA Exemplo ",
        "Hospital Modelo ",
        "clínico ",
        "pediatra ",
        "10/08 ",
        "dias 8 e 9 ",
        "sábado ",
        "hoje ",
        "SD ",
        "SN ",
        "19h às 7h ",
        "R$ 1.500 ",
        "1.800 ",
        "120/h ",
        "PJ ",
        "Fulana ",
        "91 98100-0001 ",
        "preenchido ",
        "~",
        "\n",
        "\n\n",
        ", ",
        " e ",
        " ou ",
        " - ",
        "✅",
        "❌",
        "\u200b",
        "𝗦𝗡 ",
        "seg a sex ",
        "feriado ",
        "não ",
        "corrigindo: ",
        "procuro plantão ",
        "troco ",
        "29/02 ",
        "31/04/2027 ",
        "99/99 ",
        "de 10 a ",
    )
)
MADE = st.lists(PIECES, max_size=25).map("".join)
ANY = st.one_of(MADE, st.text(max_size=200))
WHEN = st.datetimes(datetime(2020, 1, 1), datetime(2035, 12, 31), timezones=st.just(ZONE))
LINES = st.lists(
    st.sampled_from(
        [
            f"{day:02d}/08 {shift} {price}"
            for day in (10, 11, 12, 20)
            for shift in ("SD", "SN")
            for price in ("1.500", "1.800")
        ]
    ),
    min_size=1,
    max_size=6,
    unique_by=lambda line: line[:8],
)


def plain(vaga: VagaLida) -> tuple[object, ...]:
    fields = (vaga.hospital, vaga.especialidade, vaga.data, vaga.periodo, vaga.valor)
    return tuple(None if each is None else each.valor for each in fields)


@given(ANY, WHEN)
@settings(max_examples=100, deadline=None)
def test_every_text_is_read_without_an_error(texto: str, em: datetime) -> None:
    read = lida(texto, em)
    assert isinstance(read, Leitura)
    assert 0 <= read.confianca <= 1
    assert read.eh_oferta or not read.vagas
    assert 0 <= heuristica(texto).score <= 1


@given(MADE)
@settings(max_examples=100, deadline=None)
def test_every_field_is_at_its_slice(texto: str) -> None:
    for vaga in lida(texto).vagas:
        for name, (start, end) in trechos(vaga).items():
            assert 0 <= start < end <= len(texto), name
        if vaga.contato_whatsapp is not None and vaga.contato_whatsapp.trecho is not None:
            start, end = vaga.contato_whatsapp.trecho
            digits = "".join(char for char in texto[start:end] if char.isdigit())
            assert digits.removeprefix("55") in vaga.contato_whatsapp.valor
        if vaga.contato_nome is not None and vaga.contato_nome.trecho is not None:
            start, end = vaga.contato_nome.trecho
            assert chave(texto[start:end]) == chave(vaga.contato_nome.valor)


@given(MADE, WHEN)
@settings(max_examples=100, deadline=None)
def test_no_vaga_is_before_the_day_of_the_message(texto: str, em: datetime) -> None:
    today: date = em.astimezone(ZONE).date()
    assert all(vaga.data.valor >= today for vaga in lida(texto, em).vagas)


@given(LINES.flatmap(lambda lines: st.tuples(st.just(lines), st.permutations(lines))))
@settings(max_examples=40, deadline=None)
def test_order_of_complete_lines_does_not_matter(both: tuple[list[str], list[str]]) -> None:
    read = [lida("HTN precisa de clínico\n" + "\n".join(lines), SEGUNDA) for lines in both]
    assert set(map(plain, read[0].vagas)) == set(map(plain, read[1].vagas))
    assert len(read[0].vagas) == len(both[0])


@given(st.text(max_size=300))
@settings(max_examples=100, deadline=None)
def test_folded_text_keeps_the_position_of_each_letter(texto: str) -> None:
    lido = Texto.de(texto)
    for word in lido.palavras:
        start, end = lido.trecho(word.inicio, word.fim)
        assert 0 <= start < end <= len(texto)
        assert Texto.de(texto[start:end]).plano == word.texto
