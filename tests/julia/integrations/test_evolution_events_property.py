"""Every request body posted to our webhook is read without an error. A WhatsApp address that hides the phone number is
never read as a phone number.
"""

from datetime import UTC, datetime
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from app.contexts.comum.telefone import address, chave, forms
from app.contexts.webhooks.api import DeGrupo, Eco, EntregaDoWebhook, Recebida
from app.integrations.evolution.answers import instance_of, number_of, read_stored, send_result, unavailable
from app.integrations.evolution.events import WANTED, delivery_of, facts_of
from app.integrations.evolution.http import Answer
from batuta.kernel.storage.json import dumps
from tests.faults.figures import LONG

NOW = datetime(2026, 1, 5, 12, tzinfo=UTC)
JIDS = [
    "5511900000001@s.whatsapp.net",
    "999000111222333@lid",
    "120363000000000001@g.us",
    "status@broadcast",
    "@",
    "x@lid",
    "",
]
scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.text(max_size=10)
    | st.sampled_from(JIDS)
)
anything = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
)


def with_keys(names: list[str], values: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=dict.fromkeys(names, values))


keys = with_keys(["id", "remoteJid", "fromMe", "participant", "remoteJidAlt", "participantAlt"], scalars)
messages = with_keys(["conversation", "imageMessage", "extendedTextMessage", "ephemeralMessage"], anything)
datas = st.fixed_dictionaries(
    {},
    optional={
        "key": keys | anything, "message": messages | anything, "messageType": scalars, "messageTimestamp": scalars,
        "pushName": scalars, "status": scalars | st.sampled_from(["READ", "SERVER_ACK", "closed"]), "keyId": scalars,
        "state": scalars, "statusReason": scalars | st.sampled_from([401, 403]), "wuid": scalars, "contextInfo": anything,
    },
)  # fmt: skip
bodies = st.fixed_dictionaries(
    {},
    optional={
        "event": st.sampled_from(sorted(WANTED)) | scalars, "instance": scalars,
        "data": datas | st.lists(datas, max_size=2) | anything, "date_time": scalars, "apikey": scalars,
    },
)  # fmt: skip


@settings(max_examples=400 if LONG else 100)
@given(bodies | anything)
def test_every_delivery_is_read_without_an_error_and_can_be_stored(body: Any) -> None:
    delivery = delivery_of(body)
    if not isinstance(delivery, EntregaDoWebhook):
        return
    assert len(delivery.chave) == 64
    assert "apikey" not in delivery.payload
    dumps(delivery.payload).encode()
    for fact in facts_of(delivery.evento, delivery.payload, NOW):
        who = fact.de if isinstance(fact, Recebida) else fact.autor if isinstance(fact, DeGrupo) else None
        who = fact.para if isinstance(fact, Eco) else who
        if who is not None and who.telefone is not None:
            assert who.telefone.isdecimal()
            assert who.lid is None or not who.lid.startswith(who.telefone)


@given(st.integers(100, 599), anything)
def test_every_answer_of_the_gateway_is_one_of_our_values(status: int, body: Any) -> None:
    answer = Answer(status, body)
    assert send_result(answer, NOW) is not None
    assert (unavailable(answer) is None) == (200 <= status < 300)
    for row in body if isinstance(body, list) else [body]:
        instance_of(row), number_of(row), read_stored(row)


@given(st.text("0123456789", min_size=8, max_size=15))
def test_every_form_of_a_number_has_the_same_key(number: str) -> None:
    assert {chave(form) for form in forms(number)} == {chave(number)}
    assert number in forms(number)
    found = address(f"{number}@s.whatsapp.net")
    assert found is not None
    assert found.telefone == number
    hidden = address(f"{number}@lid")
    assert hidden is not None
    assert hidden.telefone is None
