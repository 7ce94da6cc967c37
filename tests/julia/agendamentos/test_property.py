"""Whatever a cell contains, it is read quickly and no value is invented."""

import re
import string
import time

from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.contexts.agendamentos.documento.documento import cpf_valido, documento_de
from app.contexts.agendamentos.endereco.endereco import endereco_de
from app.contexts.agendamentos.planilha.celulas import data_da, dito, hora_da, telefone_da
from app.contexts.agendamentos.texto import limpo, quase, titulo
from batuta.kernel.storage.storable import is_writable

WORDS = [
    "Rua",
    "R.",
    "Av.",
    "nº",
    "12",
    "12A",
    "1.200",
    "s/n",
    "ap 3",
    "bl B",
    "-",
    ",",
    ";",
    "/",
    "|",
    "\n",
    "(",
    ")",
    "Jd.",
]
WORDS += [
    "Centro",
    "SP",
    "São Paulo",
    "CEP 01310-200",
    "km 5",
    "Qd",
    "Lt",
    "CPF:",
    "RG",
    "529.982.247-25",
    "mãe",
    "SSP/SP",
]
SHUFFLED = st.lists(st.sampled_from(WORDS), max_size=40).map(" ".join)
ANYTHING = st.text(max_size=300) | SHUFFLED | st.text(string.digits + ".-/ Xx", max_size=80)


@given(ANYTHING)
@example("SN 000. 0")
@settings(max_examples=300, deadline=None)
def test_rules_accept_every_text_and_never_invent_digits(texto: str) -> None:
    endereco, documento = endereco_de(texto), documento_de(texto)
    digits = re.sub(r"[^0-9]", "", limpo(texto))
    assert endereco.cep is None or endereco.cep.replace("-", "") in digits
    assert documento.cpf is None or (cpf_valido(documento.cpf) and documento.cpf in digits)
    assert documento.rg is None or documento.rg.rstrip("X") in digits
    assert documento.rg is not None or (documento.orgao_emissor is None and documento.uf_emissor is None)
    assert "" not in (endereco.logradouro, endereco.numero, endereco.complemento, endereco.bairro, endereco.cidade)


@given(
    st.text()
    | st.floats()
    | st.integers()
    | st.datetimes()
    | st.dates()
    | st.times()
    | st.timedeltas()
    | st.booleans()
    | st.none()
)
@settings(max_examples=200, deadline=None)
def test_every_cell_value_is_accepted(valor: object) -> None:
    data_da(valor), telefone_da(valor)  # type: ignore[arg-type]
    hora = hora_da(valor)  # type: ignore[arg-type]
    assert hora is None or re.fullmatch(r"[0-2][0-9]:[0-5][0-9]", hora)
    texto = dito(valor)  # type: ignore[arg-type]
    assert texto is None or is_writable(texto)


@given(st.text(max_size=30), st.text(max_size=30))
def test_near_match_is_symmetric(one: str, other: str) -> None:
    assert quase(one, other) == quase(other, one)
    assert quase(one, one)


@given(st.text(string.ascii_letters + " áç-", max_size=60))
def test_title_case_is_idempotent(texto: str) -> None:
    assert titulo(titulo(texto)) == titulo(texto) or not titulo(texto).strip()


def test_long_nonsense_is_read_in_linear_time() -> None:
    for piece in (
        "Rua ",
        "12 ",
        "- ",
        "nº ",
        "ap ",
        "( ",
        "CPF ",
        "1.",
        "a" * 5,
        "S/N ",
        "\n",
        "Jd. ",
        "529.982.247-25 ",
    ):
        began = time.process_time()
        endereco_de(piece * 5000)
        documento_de(piece * 5000)
        assert time.process_time() - began < 1, piece
