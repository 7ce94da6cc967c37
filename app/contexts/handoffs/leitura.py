"""Read the reply from the person who posted a vacancy. If the reply is doubtful, a team member reads it.

Negations are found first and removed together with the words that they negate. If the remaining text still confirms,
the reply contradicts itself and is doubtful.
"""

import re
import unicodedata
from typing import Final

_OPEN: Final = re.compile(
    r"\?|\b(ainda|talvez|acho|parece|quase|depois|amanha|aguard\w+|esper[ae]\w*|ver(ei|ificar|ifico)?|vejo|consult\w+"
    r"|sei|lembro|conheco|entendi|depende|se|quem|qual|quais|quando|quanto|como|onde|qual vaga|te (aviso|falo|retorno))\b"
)
_DEAL: Final = r"(confirm\w+|fech\w+|cert[oa]|acertad\w+|combinad\w+|reservad\w+|e (dele|dela|sua|seu)|fica com \w+)"
_OTHER: Final = r"com (um |uma )?outr[oa]\w*|outr[oa]s? (medic\w+|pessoa|profissional|colega|doutor\w*|dr\w*)"
_NO: Final = re.compile(
    rf"\b{_DEAL}( \w+){{0,3}} ({_OTHER})( \w+)?|\b({_OTHER})( \w+)?"
    rf"|\b(nao|nem|nunca)( \w+){{0,2}}? {_DEAL}"
    r"|\bnao (foi|esta|deu|da|vai|rolou|quero|quis|posso|pode|tenho|temos|tem|precis\w+|aceit\w+|e mais)\b( \w+)?( mais)?"
    r"|\b(ja (foi )?(preenchid\w+|ocupad\w+|cobert\w+|pegaram|pegou|fech\w+ a vaga))\b"
    r"|\b(preenchid[oa]|ocupad[oa]|cancel\w+|desist\w+|recus\w+|negativo|desconfirm\w+|indisponivel)\b|\bnao\b"
)
_YES: Final = re.compile(
    r"\b(confirm(o|ado|ada|adissimo|amos|ei|ou|ar)|fech(ado|ada|ou|ei|amos)|tudo certo|ta certo|esta certo|combinado"
    r"|acertado|pode (confirmar|fechar|ser|vir|mandar)|sim|isso mesmo|positivo|ok|okay|beleza|perfeito|otimo|certo|aprovad[oa])\b"
)


def confirma(texto: str) -> bool | None:
    """Return whether a reply confirms the doctor, or None if the reply is unclear."""
    plain = _fold(texto)
    if _OPEN.search(plain):
        return None
    rest, negations = _NO.subn(" ", plain)
    agrees = _YES.search(rest) is not None
    if negations:
        return None if agrees else False
    return True if agrees else None


def _fold(texto: str) -> str:
    """Return the words in lower case without accents. Commas and question marks remain; other punctuation is removed."""
    apart = unicodedata.normalize("NFD", texto.lower())
    plain = "".join(each for each in apart if not unicodedata.combining(each))
    return " ".join(re.sub(r"[^a-z0-9?,]+", " ", plain).replace(",", " , ").split())
