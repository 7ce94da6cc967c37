"""Interface of the send protocol for channels such as WhatsApp: the messages that a channel sends, and the answers that
it may give.
"""

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
from app.contexts.envio.registro import Achada, EnvioEmDuvida, Fatos, Mensagem, Registro

__all__ = [
    "BEFORE",
    "ECHO_PENDING",
    "OLDER_THAN_A_COPY",
    "Achada",
    "Ausente",
    "Duvidosa",
    "Enviada",
    "EnvioEmDuvida",
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
