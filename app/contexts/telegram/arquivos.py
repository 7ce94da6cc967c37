"""Files attached to queued messages. The database stores each file until it is sent, because the worker that sends it
may run on another machine.
"""

from typing import Final

from app.contexts.telegram.porta import Arquivo
from batuta import BatutaError
from batuta.kernel import Clock, Json, dataclass
from batuta.sql import Database, Query, Reading, Transaction, load_queries

# Metadata key of the name, type and size of a file to send.
ANEXO: Final = "anexo"
LARGEST_FILE: Final = 20 * 1024 * 1024
LONGEST_NAME: Final = 200
# The longest text that Telegram accepts with a file.
LONGEST_CAPTION: Final = 1_024


class ArquivoRecusado(BatutaError):
    sentence = (
        "the file {nome} cannot be sent: it must have between 1 byte and {most} MB, and its text at most {longest} "
        "characters; choose another file or shorten the text"
    )


@dataclass(frozen=True, slots=True)
class FileQueries:
    store: Query
    read: Query
    remove: Query


class Arquivos:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._queries = load_queries(FileQueries, "sql/arquivos.sql", database.dialect)

    async def guardar(self, transaction: Transaction, mensagem_id: str, cliente_id: str, arquivo: Arquivo) -> None:
        await transaction.run(
            self._queries.store,
            mensagem_id=mensagem_id,
            cliente_id=cliente_id,
            nome=arquivo.nome,
            mime=arquivo.mime,
            conteudo=arquivo.conteudo,
            now=self._clock.now(),
        )

    async def ler(self, reading: Reading, mensagem_id: str) -> Arquivo | None:
        row = await reading.one(self._queries.read, mensagem_id=mensagem_id)
        return None if row is None else Arquivo(conteudo=row["conteudo"], nome=row["nome"], mime=row["mime"])

    async def apagar(self, mensagem_id: str) -> None:
        await self._database.run(self._queries.remove, mensagem_id=mensagem_id)


def arquivo_de(nome: str, mime: str, conteudo: bytes, texto: str) -> Arquivo:
    """Return a file to send with a message's text. Raises ArquivoRecusado if Telegram would refuse the file or the
    text.
    """
    if not 0 < len(conteudo) <= LARGEST_FILE or len(texto) > LONGEST_CAPTION:
        raise ArquivoRecusado(nome=nome[:LONGEST_NAME], most=LARGEST_FILE // 1024 // 1024, longest=LONGEST_CAPTION)
    # A client may send a path, so only its last part is used.
    name = nome.replace("\\", "/").rpartition("/")[2].strip()[-LONGEST_NAME:]
    return Arquivo(conteudo=conteudo, nome=name or "arquivo", mime=mime[:LONGEST_NAME] or "application/octet-stream")


def anexo_de(arquivo: Arquivo) -> Json:
    """Return the description of a file (name, type and size) that is stored in its message's metadata."""
    return {"nome": arquivo.nome, "mime": arquivo.mime, "tamanho": len(arquivo.conteudo)}
