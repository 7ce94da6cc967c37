"""Replies of the simulated people, chosen by the message that they received. All people are fictitious.

The text of a message determines the reply. A message without a question gets no reply, so a conversation with a program
always ends.
"""

from typing import Final

from batuta.kernel import dataclass
from simulador.comportamento import Chance


@dataclass(frozen=True, slots=True, kw_only=True)
class Assunto:
    """A kind of message: the words that identify it, and its possible replies with their shares. If the shares add up
    to less than one, the remaining messages get no reply. ``after`` is the shortest and the longest time to a reply, in
    seconds.
    """

    name: str
    words: tuple[str, ...]
    replies: tuple[tuple[float, str], ...]
    after: tuple[float, float] = (5.0, 20.0)


@dataclass(frozen=True, slots=True)
class Reply:
    text: str
    after: float


# The first kind with words that occur in the text applies.
ASSUNTOS: Final = (
    # Most posters answer only after a reminder.
    Assunto(
        name="hand-off",
        words=("Um médico quer esta vaga que você publicou",),
        replies=((0.25, "Confirmo"), (0.10, "Não confirmo, já fechei com outra pessoa"), (0.05, "Quem é o médico?")),
        after=(20.0, 60.0),
    ),
    Assunto(
        name="reminder of a hand-off",
        words=("CONFIRMO ou NÃO CONFIRMO",),
        replies=((0.60, "Confirmo"), (0.15, "Não confirmo, já fechei com outra pessoa")),
        after=(20.0, 60.0),
    ),
    Assunto(
        name="offer",
        words=("plantão em aberto", "plantão da sua especialidade está em aberto"),
        replies=(
            (0.35, "Aceito!"),
            (0.20, "Não posso nesse dia, obrigada"),
            (0.15, "Quanto paga?"),
            (0.12, "Quero falar com uma pessoa, por favor"),
        ),
    ),
    Assunto(
        name="facts of a vacancy",
        words=("Estes são os dados do plantão", "responda ACEITO"),
        replies=((0.50, "Aceito"), (0.25, "Agradeço, mas esse valor não compensa para mim")),
    ),
    Assunto(
        name="shift to rate",
        words=("Responda com uma nota",),
        replies=((0.50, "5, equipe ótima"), (0.15, "2, atrasaram o pagamento")),
    ),
    Assunto(
        name="first contact",
        words=("sua especialidade", "quer receber ofertas", "Quer saber de plantões", "interesse em plantões"),
        replies=(
            (0.35, "Tenho interesse, sou pediatra em São Paulo"),
            (0.20, "Que tipo de plantão vocês têm?"),
            (0.10, "Você é um robô?"),
            (0.03, "Não quero mais receber mensagens"),
        ),
    ),
)


def reply_to(text: str, chance: Chance, id: str) -> Reply | None:
    """Return the reply to the message ``id``, or None for silence. The same message always gets the same reply."""
    assunto = next((each for each in ASSUNTOS if any(words in text for words in each.words)), None)
    if assunto is None:
        return None
    lot, least, most = chance.of("reply", id), *assunto.after
    for share, said in assunto.replies:
        if lot < share:
            return Reply(said, least + (most - least) * chance.of("reply after", id))
        lot -= share
    return None
