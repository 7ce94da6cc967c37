"""The one door: a message becomes a reading."""

from datetime import datetime

from app.contexts.grupos.leitura.heuristica import nota
from app.contexts.grupos.leitura.texto import Texto
from app.contexts.grupos.leitura.tipos import Categoria, Leitura
from app.contexts.grupos.leitura.vocabulario import Vocabulario


def ler(
    texto: str,
    *,
    enviado_em: datetime,
    grupo: str | None = None,
    regiao: str | None = None,
    vocabulario: Vocabulario | None = None,
) -> Leitura:
    """``enviado_em`` is aware: every relative date counts from its day in São Paulo."""
    first = nota(Texto.de(texto), vocabulario or Vocabulario.padrao())
    is_offer = first.score >= 0.8
    return Leitura(is_offer, first.score, Categoria.OFERTA if is_offer else Categoria.CONVERSA, first.motivo)
