"""Read one inbound text: its class, and whether the person asks to be left alone.

The grammar (``optout``, ``retirada``) finds plain requests. The model (``classificador``) scores the whole text and each sentence.
One calibrated probability combines the two. Its weights and limits come from authors whose sentences the model did not see.
"""

from typing import Final

from app.contexts.leitura_conversas.classificador import Atributos, Classificador, features, logistic, read_weights
from app.contexts.leitura_conversas.optout import CERTO, NAO, PROVAVEL, Indicio, cessation
from app.contexts.leitura_conversas.retirada import withdrawal
from app.contexts.leitura_conversas.texto import Frase, Texto, separate
from app.contexts.leitura_conversas.tipos import Classe, Leitura, OptOut

MODEL: Final = "modelo"
_CLASSES: Final = tuple(each for each in Classe if each is not Classe.OPT_OUT)
# Words of a sentence that a reading shows.
_SHOWN: Final = 12


def ler(texto: str) -> Leitura:
    """Read one inbound text. Never raises. The time grows with the length of the text; of a text longer than 64 Ki
    characters only the two ends are read.
    """
    separated = separate(texto)
    if not separated.frases:
        return Leitura(classe=Classe.OUTRO, opt_out=NAO, confianca=1.0, regra="")
    classificador, found = read_weights(), features(separated)
    sign = strongest(separated)
    probability = logistic(score(classificador, found, None if sign is None else sign[0].opt_out))
    if probability < classificador.limits["opt_out"]:
        classe, confidence = _classify(classificador, found)
        return Leitura(classe=classe, opt_out=NAO, confianca=round(confidence, 3), regra="")
    return Leitura(
        classe=Classe.OPT_OUT,
        opt_out=_strength(classificador, found, probability, sign),
        confianca=round(probability, 3),
        regra=MODEL if sign is None else sign[0].regra,
        trechos=(
            _words(classificador, separated, found) if sign is None else sign[1].words(sign[0].start, sign[0].end),
        ),
    )


def strongest(texto: Texto) -> tuple[Indicio, Frase] | None:
    """Return the first certain request that the grammar finds, or else the first probable one."""
    probable = None
    for frase in dict.fromkeys(texto.frases):
        for sign in (*cessation(frase), *withdrawal(frase)):
            if sign.opt_out is CERTO:
                return sign, frase
            probable = probable or (sign, frase)
    return probable


def score(classificador: Classificador, found: Atributos, grammar: OptOut | None) -> float:
    """Return the calibrated log odds of an opt-out."""
    weights = classificador.calibration
    letters, words = classificador.outputs["letras"], classificador.outputs["opt_out"]
    return (
        weights["bias"]
        + weights["letters"] * letters.score(found.texto.letras)
        + weights["letters_of_sentence"] * max(letters.score(each.letras) for each in found.frases)
        + weights["words"] * words.score(found.texto.palavras)
        + weights["words_of_sentence"] * max(words.score(each.palavras) for each in found.frases)
        + (weights[grammar.value] if grammar is not None else 0.0)
    )


def _strength(
    classificador: Classificador, found: Atributos, probability: float, sign: tuple[Indicio, Frase] | None
) -> OptOut:
    """Return whether an opt-out is certain or probable. It is certain if the probability is high and the grammar or the
    model finds a request.
    """
    asks = (sign is not None and sign[0].opt_out is CERTO) or (
        classificador.outputs["certo"].score(found.texto.palavras) >= classificador.limits["request"]
    )
    return CERTO if asks and probability >= classificador.limits["certo"] else PROVAVEL


def _classify(classificador: Classificador, found: Atributos) -> tuple[Classe, float]:
    likely = {each: logistic(classificador.outputs[each.value].score(found.texto.palavras)) for each in _CLASSES}
    best = max(likely, key=lambda each: likely[each])
    return best, likely[best] / sum(likely.values())


def _words(classificador: Classificador, texto: Texto, found: Atributos) -> str:
    """Return the start of the sentence with the highest score."""
    scores = classificador.outputs["opt_out"]
    distinct = list({frase.escrita + frase.fim[:1]: frase for frase in texto.frases}.values())
    best = max(zip(found.frases, distinct, strict=True), key=lambda each: scores.score(each[0].palavras))[1]
    return best.words(0, _SHOWN) or " ".join(each.texto for each in best.sinais[:_SHOWN])
