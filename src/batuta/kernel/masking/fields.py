"""Decides from a field's name whether the field contains personal data, a secret, or text that a person wrote."""

import re
import unicodedata
from enum import Enum
from functools import lru_cache
from itertools import pairwise

HIDDEN = "[oculto]"


def _words_in(text: str) -> frozenset[str]:
    return frozenset(text.split())


# Names of fields that contain texts written by people. A log may show the length of such a text.
TEXT_FIELDS = _words_in(
    "body caption completion content conteudo conversation corpo legenda mensagem mensagens message messages prompt "
    "text texto textos texts transcricao transcript"
)
# Names of fields that identify a person.
PERSON_FIELDS = _words_in(
    "apelido bairro birth birthdate celular celulares cep cnpj cpf cpfs destinatario email emails endereco enderecos "
    "firstname fone fullname jid lastname logradouro msisdn name nascimento nickname nome nomes phone phones pushname "
    "remetente rg sobrenome surname telefone telefones username"
)
# Names of fields that contain credentials.
SECRET_FIELDS = _words_in(
    "access_key api_key apikey assinatura authorization cookie cookies credential credentials csrf jwt "
    "passphrase passwd password private_key pwd secret secrets senha senhas session sessionid signature "
    "signing_key token"
)
SENSITIVE_FIELDS = TEXT_FIELDS | PERSON_FIELDS | SECRET_FIELDS

# Words before `name` that make it the name of a person: `push_name` is personal, `job_name` is not.
_PEOPLE = _words_in(
    "author business client contact customer display doctor family first full given last medico middle nick notify "
    "participant patient person profile push recipient sender short user verified"
)
# Last words that mark a field as not sensitive: `message_id` is not a message, `token_count` is not a credential.
_ABOUT = _words_in("at bytes count expires hash id ids kind length limit name size status tokens total type version")
_STILL_SECRET = frozenset({"session_id"})
# Words that are sensitive only at the end of a name: `message` is a text, but `message_rate` is a rate.
_ONLY_AT_THE_END = frozenset({"mensagem", "mensagens", "message", "messages", "name"})


class Kind(Enum):
    TEXT = "text"
    PERSON = "person"
    SECRET = "secret"  # noqa: S105 - the name of a kind


def is_sensitive(field_name: str) -> bool:
    return kind_of(field_name) is not None


@lru_cache(maxsize=2048)
def kind_of(field_name: str) -> Kind | None:
    """Return the kind of sensitive data in a field whose value must be hidden. None means that the field is not
    sensitive: ``mask`` removes personal data from its value, and the rest may be shown.
    """
    words = _words(field_name)
    if not words:
        return None
    if "_".join(words) in _STILL_SECRET:
        return Kind.SECRET
    if len(words) > 1 and words[-1] == "name" and words[-2] in _PEOPLE:
        return Kind.PERSON
    if len(words) > 1 and words[-1] in _ABOUT:
        return None
    telling = {*words[-1:], *(word for word in words[:-1] if word not in _ONLY_AT_THE_END)}
    pairs = {f"{first}_{second}" for first, second in pairwise(words)}
    if (telling | pairs) & SECRET_FIELDS:
        return Kind.SECRET
    if telling & PERSON_FIELDS:
        return Kind.PERSON
    return Kind.TEXT if telling & TEXT_FIELDS else None


def mask_value(value: object, kind: Kind) -> str:
    """Return the mark that replaces a sensitive value. If the value is text that a person wrote, the mark states its
    length.
    """
    if kind is Kind.TEXT and isinstance(value, str):
        return f"[texto: {len(value)} caracteres]"
    return HIDDEN


_CAMEL = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_GAPS = re.compile(r"[^a-z0-9]+")


def _words(field_name: str) -> tuple[str, ...]:
    """Split a field name into words: `pushName` and `PUSH_NAME` give push and name, `endereço2` gives endereco."""
    plain = unicodedata.normalize("NFKD", _CAMEL.sub("_", field_name)).encode("ascii", "ignore").decode().lower()
    words = (word.rstrip("0123456789") for word in _GAPS.split(plain))
    return tuple(word for word in words if word)
