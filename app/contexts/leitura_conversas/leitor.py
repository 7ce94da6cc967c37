"""Read one inbound text: determine its class, and whether the person opts out.

The model (``classificador``) scores the whole text and each sentence, by letters, by words and by concepts. The scores
are combined into one calibrated probability. The combination uses different weights for single sentences and for longer
texts. These weights and the limits were fitted on sentences by authors who were not in the model's training data.
"""

from typing import Final

from app.contexts.leitura_conversas.classificador import Atributos, Classificador, features, logistic, read_weights
from app.contexts.leitura_conversas.texto import Texto, separate
from app.contexts.leitura_conversas.tipos import Classe, Leitura, OptOut

REQUEST: Final = "pedido"
ANNOYANCE: Final = "incomodo"
_CLASSES: Final = tuple(each for each in Classe if each is not Classe.OPT_OUT)
# Number of words of a sentence that a result shows.
_SHOWN: Final = 12


def ler(texto: str) -> Leitura:
    """Read one inbound text. The function never raises an error, and its running time is linear in the length of the
    text. If a text is longer than 64 Ki characters, only the start and the end are read.
    """
    separated = separate(texto)
    if not separated.frases:
        return Leitura(classe=Classe.OUTRO, opt_out=OptOut.NAO, confianca=1.0, regra="")
    classificador, found = read_weights(), features(separated)
    probability = logistic(score(classificador, found))
    if probability < classificador.limits["opt_out"]:
        classe, confidence = _classify(classificador, found)
        return Leitura(classe=classe, opt_out=OptOut.NAO, confianca=round(confidence, 3), regra="")
    asks = classificador.outputs["certo"].score(found.texto.palavras) >= classificador.limits["request"]
    is_certain = asks and probability >= classificador.limits["certo"]
    return Leitura(
        classe=Classe.OPT_OUT,
        opt_out=OptOut.CERTO if is_certain else OptOut.PROVAVEL,
        confianca=round(probability, 3),
        regra=REQUEST if asks else ANNOYANCE,
        trechos=(_words(classificador, separated, found),),
    )


def score(classificador: Classificador, found: Atributos) -> float:
    """Return the calibrated log odds that the text is an opt-out."""
    letters, words, concepts = (classificador.outputs[name] for name in ("letras", "opt_out", "conceitos"))
    is_single = len(found.frases) == 1
    weights = classificador.calibration["single" if is_single else "several"]
    odds = weights["bias"] + weights["letters"] * letters.score(found.texto.letras)
    odds += weights["words"] * words.score(found.texto.palavras)
    odds += weights["concepts"] * concepts.score(found.texto.conceitos)
    if is_single:
        return odds
    return (
        odds
        + weights["letters_of_sentence"] * letters.best(each.letras for each in found.frases)
        + weights["words_of_sentence"] * words.best(each.palavras for each in found.frases)
        + weights["concepts_of_sentence"] * concepts.best(each.conceitos for each in found.frases)
    )


def _classify(classificador: Classificador, found: Atributos) -> tuple[Classe, float]:
    likely = {each: logistic(classificador.outputs[each.value].score(found.texto.palavras)) for each in _CLASSES}
    best = max(likely, key=lambda each: likely[each])
    return best, likely[best] / sum(likely.values())


def _words(classificador: Classificador, texto: Texto, found: Atributos) -> str:
    """Return the first words of the sentence that most resembles an opt-out."""
    scores = classificador.outputs["opt_out"]
    rated = zip(found.frases, texto.distinct(), strict=True)
    best = max(rated, key=lambda each: scores.score(each[0].palavras))[1]
    return " ".join(each.texto for each in (best.palavras or best.sinais)[:_SHOWN])
