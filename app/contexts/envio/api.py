"""Interface of the send protocol for the channels: the possible answers of a channel, and the messages that it sends."""

from app.contexts.envio.canal import (
    BEFORE,
    ECHO_PENDING,
    OLDER_THAN_A_COPY,
    Ausente,
    Duvidosa,
    Enviada,
    Incerta,
    Lembrada,
    NaoEnviada,
    Recusada,
    Resposta,
    SemProva,
    Suspensa,
    blind_since,
)
from app.contexts.envio.registro import Achada, Duvida, Fatos, Mensagem, Registro

__all__ = [
    "BEFORE",
    "ECHO_PENDING",
    "OLDER_THAN_A_COPY",
    "Achada",
    "Ausente",
    "Duvida",
    "Duvidosa",
    "Enviada",
    "Fatos",
    "Incerta",
    "Lembrada",
    "Mensagem",
    "NaoEnviada",
    "Recusada",
    "Registro",
    "Resposta",
    "SemProva",
    "Suspensa",
    "blind_since",
]
