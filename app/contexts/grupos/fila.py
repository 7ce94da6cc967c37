"""The groups pipeline's queue, ``fila_processamento_grupos``: one row per message, and later one row per vacancy in the
message.
"""

from enum import StrEnum

from batuta.queues import NewItem, QueueTable


class Estagio(StrEnum):
    """The pipeline stage for which a row is waiting. A row in ``PENDENTE`` is waiting for the first stage, the
    heuristic.
    """

    PENDENTE = "pendente"
    CLASSIFICACAO = "classificacao"
    EXTRACAO = "extracao"
    NORMALIZACAO = "normalizacao"
    DEDUPLICACAO = "deduplicacao"
    IMPORTACAO = "importacao"


FINALIZADO, DESCARTADO, ERRO = "finalizado", "descartado", "erro"
FILA_GRUPOS = QueueTable(
    name="fila_processamento_grupos",
    state="estagio",
    queue="estagio",
    ready=tuple(Estagio),
    running=None,
    done=FINALIZADO,
    dead=ERRO,
    cancelled="cancelado",
    attempts="tentativas",
    crashes="quedas",
    available_at="proximo_retry",
    error="ultimo_erro",
    priority="com_erro",
    key="chave",
    last_stage="ultimo_estagio",
    updated_at="updated_at",
    given=("mensagem_id", "vaga_grupo_id", "estagio", "created_at", "chave"),
)


def da_mensagem(mensagem_id: str) -> NewItem:
    return NewItem(values={"mensagem_id": mensagem_id}, key=f"m:{mensagem_id}")


# Prefix of the key of a queue row that reads an old message again.
RELEITURA = "r:"


def da_releitura(mensagem_id: str) -> NewItem:
    return NewItem(values={"mensagem_id": mensagem_id}, key=f"{RELEITURA}{mensagem_id}")


def da_vaga(mensagem_id: str, vaga_grupo_id: str) -> NewItem:
    return NewItem(values={"mensagem_id": mensagem_id, "vaga_grupo_id": vaga_grupo_id}, key=f"v:{vaga_grupo_id}")
