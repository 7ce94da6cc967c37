"""When somebody asks us to stop. Rather once too often than once too seldom, but never because of a word in passing:
"vou parar no hospital às 7h" and "não posso sair desse plantão" are talk about work.
"""

import re
import unicodedata

# The whole message is this, give or take politeness.
_ALONE = frozenset(
    (
        "parar",
        "pare",
        "para",
        "stop",
        "sair",
        "remover",
        "descadastrar",
        "descadastre",
        "unsubscribe",
        "chega",
        "bloquear",
    )
)
_POLITE = frozenset(
    ("por", "favor", "pf", "pfv", "obrigado", "obrigada", "obg", "ok", "oi", "ola", "bom", "boa", "dia", "tarde", "noite",
     "quero", "eu", "me")
)  # fmt: skip
# Somewhere in it, and as a wish: "não mandei" and "tirei meu nome" tell of something that was done.
_NOT = r"\b(?:nao|n)"
_ASKED = re.compile(
    rf"{_NOT}(?: me)? (?:mandem?|manda|enviem?|envia|escreva|escreve|contate|procure|chame|ligue)(?: mais| mensage\w+| nada|$)"
    rf"|{_NOT}(?: me)? (?:perturbe|incomode|encha)\b"
    rf"|{_NOT} (?:quero|desejo|aceito|gostaria de)(?: mais)? (?:receber|ser contatad\w|que me \w+|mensage\w+|contato\b)"
    r"|\b(?:para|pare|parem|parar) (?:de|com)(?: me| isso| as| essas)? ?(?:mandar|enviar|escrever|contatar|mensage\w+)"
    r"|\b(?:tira|tire|tirem|tirar|remova|remove|remover|removam|exclua|exclui|excluir|retire|retira|retirar|apague|apagar)"
    r"(?: me| o| a| da| de| desta| dessa| sua| esse| este| meu)* (?:lista|numero|contato|cadastro|telefone)\b"
    r"|\bsair d(?:a|esta|essa|sua) lista\b"
    r"|\bcancel(?:ar|a|e) (?:a |as |o |meu |minha )?(?:inscricao|cadastro|mensagens|recebimento)\b"
    r"|\bopt ?out\b|\bdescadastr(?:ar|a|e|em)\b"
)
# Whoever has not asked by then tells a story.
_LONGEST = 4_000


def pede_para_parar(texto: str) -> bool:
    words = _plain(texto[:_LONGEST])
    left = [word for word in words.split() if word not in _POLITE]
    return (len(left) == 1 and left[0] in _ALONE) or _ASKED.search(words) is not None


def _plain(texto: str) -> str:
    """Small letters without accents, signs as spaces."""
    bare = "".join(each for each in unicodedata.normalize("NFD", texto.lower()) if not unicodedata.combining(each))
    return " ".join(re.sub(r"[^a-z0-9]", " ", bare).split())
