import random
import string
import time

import pytest

from batuta.kernel.masking import mask
from batuta.kernel.masking.numbers import is_cnpj, is_cpf

PHONES = [
    "+55 11 98765-4321",
    "+5511987654321",
    "+55 (11) 98765-4321",
    "+55(11)98765-4321",
    "+55 11 9 8765 4321",
    "+55 11 987 654 321",
    "0055 11 98765-4321",
    "55 11 98765-4321",
    "5511987654321",
    "551187654321",  # as WhatsApp stores numbers that were registered before the ninth digit was introduced
    "551134567890",
    "(11) 98765-4321",
    "(11)987654321",
    "(011) 98765-4321",
    "(11) 3456-7890",
    "11987654321",
    "011987654321",
    "01511987654321",  # with the carrier's code
    "11 98765-4321",
    "11 987654321",
    "11-98765-4321",
    "11.98765.4321",
    "11 9 8765-4321",
    "11 987 654 321",
    "1198765-4321",
    "1134567890",
    "1187654321",
    "11 3456-7890",
    "11 3456 7890",
    "98765-4321",
    "11\u00a098765\u20114321",  # non-breaking space and hyphen
    "11\u200b98765\u20134321",
    "%2B55%2011%2098765-4321",
    "%2811%29%2098765-4321",
    "11\\u00a098765-4321",
    "+14155550123",
]


@pytest.mark.parametrize("phone", PHONES)
@pytest.mark.parametrize("around", ["{}", "fone {}.", "tel:{};", '{{"to":"{}"}}', "x{}y", "a={} b", "[{}]", "{}\n{}"])
def test_phone_is_masked_in_every_format(phone: str, around: str) -> None:
    assert mask(around.format(phone, phone)) == around.format("[telefone]", "[telefone]")


@pytest.mark.parametrize(
    "jid",
    [
        "5511987654321@s.whatsapp.net",
        "551187654321@c.us",
        "5511987654321:12@s.whatsapp.net",
        "123456789012345@lid",
        "120363041234567890@g.us",
        "5511987654321-1612345678@g.us",
        "5511987654321%40s.whatsapp.net",
    ],
)
def test_whatsapp_address_is_masked(jid: str) -> None:
    assert mask(f"to {jid}, now") == "to [whatsapp], now"


@pytest.mark.parametrize("cpf", ["123.456.789-09", "000.000.000-00", "12345678909", "123 456 789 09", "123456789-09"])
def test_cpf_is_masked(cpf: str) -> None:
    assert mask(f"de {cpf}, sim") == "de [cpf], sim"


@pytest.mark.parametrize("cnpj", ["12.345.678/0001-95", "12345678000195", "12.ABC.345/01DE-35", "12345678/0001-95"])
def test_cnpj_is_masked(cnpj: str) -> None:
    assert mask(f"de {cnpj}, sim") == "de [cnpj], sim"


def test_rg_with_its_dots_is_masked() -> None:
    assert mask("rg 12.345.678-X e 1.234.567-8") == "rg [rg] e [rg]"


def test_check_digits_tell_a_cpf_and_a_cnpj_from_other_numbers() -> None:
    assert is_cpf("12345678909")
    assert not is_cpf("12345678908")
    assert not is_cpf("11111111111")
    assert is_cnpj("12345678000195")
    assert not is_cnpj("12345678000196")
    assert not is_cnpj("00000000000000")


@pytest.mark.parametrize(
    "address",
    ["fulano@exemplo.com.br", "f.tal+x@sub.exemplo.com", "f_t-1@exemplo.org", "f%40exemplo.com", "é@exemplo.com"],
)
def test_e_mail_address_is_masked(address: str) -> None:
    assert mask(f"<{address}> x") == "<[email]> x"


JWT = "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl-_x"


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        (f"key bat_0123456789ab_{'0a' * 24}.", "key [token]."),
        ("Authorization: Bearer xyz", "Authorization: Bearer [token]"),
        ("authorization: Basic dXNlcjpwYXNz", "authorization: Basic [segredo]"),
        ("{'Authorization': 'Basic dXNlcjpwYXNz'}", "{'Authorization': '[oculto]'}"),
        ("(b'authorization', b'Basic dXNlcjpwYXNz')", "(b'authorization', b'[oculto]')"),
        ("apikey: xyz", "apikey: [segredo]"),
        ("X-Api-Key=xyz&a=1", "X-Api-Key=[segredo]&a=1"),
        ('{"apikey":"x y"}', '{"apikey":"[oculto]"}'),
        (r"{\"apikey\":\"xyz\"}", r"{\"apikey\":\"[oculto]\"}"),
        ("token=xyz, level=info", "token=[segredo], level=info"),
        ("accessToken=xyz", "accessToken=[segredo]"),
        ("password=a,b;c level=info", "password=[segredo] level=info"),
        ('"senha": 1234,', '"senha": [segredo],'),
        ("senha='a \\' b'", "senha='[oculto]'"),
        ("CLIENT_SECRET=zz", "CLIENT_SECRET=[segredo]"),
        ("secret_key => zz", "secret_key => [segredo]"),
        (f"jwt {JWT}!", "jwt [token]!"),
        ("sk-proj-abcdef0123456789", "[token]"),
        ("ghp_abcdefghij0123456789", "[token]"),
        ("AKIAABCDEFGHIJKLMNOP", "[token]"),
        (f"1234567890:{'A' * 35}", "[token]"),
        ("POST https://hooks.slack.com/services/T0/B0/xyz 200", "POST https://hooks.slack.com/services/[token] 200"),
        ("https://api.telegram.org/bot12:AA/sendMessage", "https://api.telegram.org/bot[token]"),
        ("Cookie: a=b; c=d", "Cookie: [segredo]"),
        ("GET /x?nome=Fulano&page=2", "GET /x?nome=[oculto]&page=2"),
        ("/a?next=/b?nome=Fulano", "/a?next=/b?nome=[oculto]"),
        ("postgresql://julia:pa55@db:5432/julia", "postgresql://julia:***@db:5432/julia"),
        ("postgresql://julia:p@55@db.example.com/julia", "postgresql://julia:***@db.example.com/julia"),
        ("postgresql://julia:p/55@db/julia", "postgresql://julia:***@db/julia"),
        ("redis://:pa55@cache:6379/0", "redis://:***@cache:6379/0"),
        ("postgresql://julia:12345@db/julia", "postgresql://julia:***@db/julia"),
    ],
)
def test_secret_is_masked_and_the_words_around_it_stay(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    ("text", "masked"),
    [
        ("Medico(nome='Fulano de Tal', idade=3)", "Medico(nome='[oculto]', idade=3)"),
        ("{'conteudo': 'oi doutora', 'n': 1}", "{'conteudo': '[texto: 10 caracteres]', 'n': 1}"),
        ('{"message": {"conversation": "oi"}}', '{"message": {"conversation": "[texto: 2 caracteres]"}}'),
        ('''payload="{'nome': 'Fulano'}"''', '''payload="{'nome': '[oculto]'}"'''),
        (
            "<Task exception=KeyError('oi') x>",
            "<Task exception=KeyError(<message withheld: BATUTA_SHOW_ERRORS=1 shows it>)",
        ),
    ],
)
def test_personal_data_in_a_repr_is_masked(text: str, masked: str) -> None:
    assert mask(text) == masked
    assert mask(masked) == masked


@pytest.mark.parametrize(
    "text",
    [
        "0198f3a2-1b2c-7def-8abc-0123456789ab",
        "11987654-3211-7123-8123-551134567890",
        "d41d8cd98f00b204e9800998ecf8427e",
        "2026-01-05T12:00:00.113456-0300",
        "2026-01-05T12:00:00.123456+00:00",
        "2026-01-05 12:00:00,123",
        "2026-01-05 11:00",
        "12:00:00.113456-0300",
        "20260105T120000.113456-0300",
        "20260105120000",
        "took 12.345678s",
        "took 11.98765432",
        "0:00:12.345678",
        "127.0.0.1:5432",
        "192.168.110.211:65535",
        "[::1]:8000",
        "http://localhost:8000/x?y=1",
        "postgresql://julia@db.example.com:5432/julia",
        "1767614400123456",
        "1767614400123",
        "1767614400",
        "12345678901",
        "items=1500 tokens=1500 token_count=3",
        "pid 12345 ended with 1",
        "/var/lib/batuta/2026/01/05/julia.db",
        "/usr/lib/python3.11/site-packages/asyncpg/connection.py",
        "v3.11.7 1.2.3-4 0.1.0+build.5",
        "pkg@18.2.0",
        "bytes 1234-5678/9999",
        "2025-2026",
        "job_name='pilha' name='Task-1' message_id='3EB0'",
        "token=None",
        "the schema is at 3, this code needs 5: run `batuta migrate`",
        "Hora atual: 05/01/2026 09:00:00 -0300",
    ],
)
def test_text_without_personal_data_is_unchanged(text: str) -> None:
    assert mask(text) == text


LONG = 200_000
HOSTILE = [
    *("a", "1", " ", "1 ", "11 ", "11 9", "0 ", "+55", "+55 1", "(11", "123.", "12:00:00", "2026-01-05", "0123abcd-"),
    *("token=", "token:", "secret", "session", "eyJ", "_eyJ", "eyJaaaaaaaa.", "sk-", "bat_a_", "Bearer ", "cookie:"),
    *("a@", "a@a.", "a@a.1.", "12345@", "12345-", "1234567890:", "%20", "%40", "://", "://a:", "://a:@"),
    *("'", '"', "\\", '\\"', "'a':'", "'nome':'", 'a:"', "?a=", "?nome=", "a=", "[(", "exception=A(", ",a", "é"),
]


@pytest.mark.parametrize("piece", HOSTILE)
def test_masking_of_hostile_text_takes_linear_time(piece: str) -> None:
    text = (piece * LONG)[:LONG]
    started = time.perf_counter()
    masked = mask(text)
    # A pattern that compares every pair of positions would need minutes.
    assert time.perf_counter() - started < 5
    assert mask(masked) == masked


def test_masking_of_long_noise_takes_linear_time() -> None:
    chance = random.Random(7)
    text = "".join(chance.choices(string.printable, k=LONG // 2) + chance.choices("0123456789 -.()+/:@", k=LONG // 2))
    started = time.perf_counter()
    mask(text)
    assert time.perf_counter() - started < 5
