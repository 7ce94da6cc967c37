"""Entry point of the reader. It turns a message into a reading."""

from dataclasses import replace
from datetime import datetime
from zoneinfo import ZoneInfo

from app.contexts.leitura_grupos.juizo.fechamentos import tomadas
from app.contexts.leitura_grupos.juizo.intencao import julgar
from app.contexts.leitura_grupos.juizo.sinais import pedidos, sinais
from app.contexts.leitura_grupos.marcas.folha import folha
from app.contexts.leitura_grupos.montagem.montar import montar
from app.contexts.leitura_grupos.texto.texto import Texto
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario
from app.contexts.leitura_grupos.tipos import Categoria, Leitura

SAO_PAULO = ZoneInfo("America/Sao_Paulo")


def ler(
    texto: str,
    *,
    enviado_em: datetime,
    grupo: str | None = None,
    regiao: str | None = None,
    vocabulario: Vocabulario | None = None,
) -> Leitura:
    """Read a message. Relative dates count from the day of ``enviado_em`` (aware) in São Paulo.

    ``regiao`` is the town and state of the group, such as "Salvador/BA".
    """
    known = vocabulario or Vocabulario.padrao()
    lido = Texto.de(texto, known.grafias)
    today = enviado_em.astimezone(SAO_PAULO).date()
    found = sinais(lido)
    marks = folha(lido, today, known, regiao or grupo, pedidos(lido, found))
    vagas = montar(marks, known)
    judged = julgar(lido, found, marks, vagas)
    is_offer = judged.categoria is Categoria.OFERTA
    taken = None
    if marks.fechados or marks.riscados:
        whole = marks
        if marks.riscados:
            unstruck = Texto.de(texto.replace("~", " "), known.grafias)
            whole = folha(unstruck, today, known, regiao or grupo, pedidos(unstruck, sinais(unstruck)))
        taken = tomadas(marks, montar(replace(whole, fechados=()), known), vagas, judged)
    return Leitura(
        is_offer,
        judged.confianca,
        judged.categoria,
        judged.motivo,
        vagas.abertas if is_offer else (),
        taken,
        vagas.incompletas if is_offer else (),
    )
