"""Try the first stages of the groups pipeline on one text, without storing anything. Return each stage's result and the
final decision.
"""

from collections.abc import Mapping
from datetime import date, datetime
from typing import Any

from app.contexts.esteira.leituras import Leitor, ofertadas, passa
from app.contexts.grupos.api import MotivoDoDescarte
from app.contexts.leitura_grupos.api import Leitura, Nota, VagaDita, VagaLida, trechos, vaga_documento
from app.contexts.nomes.api import Nomes, achar
from app.contexts.vagas.api import Candidata, DecisaoDaImportacao, Limiares, alcanca, julgar
from batuta import Snooze
from batuta.kernel import dataclass


@dataclass(frozen=True, slots=True)
class Ensaio:
    """The result of trying a text in the groups pipeline. ``motivo`` is the reason why the stage ``estagio`` would
    discard the text, or None if no stage would.

    ``leitura`` is None while the language model has not answered.
    """

    nota: Nota
    leitura: Leitura | None
    estagio: str
    motivo: str | None

    @property
    def vagas(self) -> tuple[VagaDita, ...]:
        return () if self.leitura is None else tuple(ofertadas(self.leitura))


async def ensaiar(
    texto: str, *, em: datetime, regiao: str | None, nota: Nota, leitor: Leitor, limiares: Limiares
) -> Ensaio:
    """Read a text as the pipeline does. The text is read even if the first stage (the heuristic) would discard it."""
    said = {"timestamp_msg": em, "grupo": None, "regiao": regiao, "score_heuristica": nota.score}
    read = await leitor(texto, {**said, "limiar_heuristica": limiares.heuristica})
    leitura = None if isinstance(read, Snooze) else read
    estagio, motivo = _fim(nota, leitura, limiares)
    return Ensaio(nota, leitura, estagio, motivo)


def destino(
    vaga: VagaLida, leitura: Leitura, nota: Nota, *, nomes: Nomes, regiao: str | None, hoje: date, limiares: Limiares
) -> str:
    """Return what the pipeline would do with a vacancy on the day of its message: ``importada``, ``revisao`` or
    ``descartada``. The result does not take other messages, blocked authors or operators' corrections into account.
    """
    if _fim(nota, leitura, limiares)[1] is not None:
        return DecisaoDaImportacao.DESCARTAR.value
    town, state = (None if each is None else each.valor for each in (vaga.cidade, vaga.uf))
    place = achar(vaga.hospital.valor, town, state, regiao, nomes)
    judged = julgar(
        Candidata(
            hospital=place.score if place.como != "recusado" else None,
            especialidade=1.0,
            data=vaga.data.valor,
            confianca_data=vaga.data.confianca,
            periodo=True,
            valor=None if vaga.valor is None else float(vaga.valor.valor),
            valor_tipo=None if vaga.valor_tipo is None else vaga.valor_tipo.valor.value,
            leitura=vaga.confianca,
        ),
        hoje,
        limiares,
    )
    return "revisao" if judged.decisao is DecisaoDaImportacao.REVISAR else judged.decisao.value


def ensaio_em_palavras(ensaio: Ensaio, texto: str) -> dict[str, Any]:
    nota, leitura = ensaio.nota, ensaio.leitura
    return {
        "descartada": ensaio.motivo is not None,
        "estagio": ensaio.estagio,
        "motivo": ensaio.motivo,
        "score": nota.score,
        "sinais": list(nota.sinais),
        "eh_oferta": None if leitura is None else leitura.eh_oferta,
        "categoria": None if leitura is None else str(leitura.categoria),
        "lida_como": None if leitura is None else leitura.motivo,
        "confianca": None if leitura is None else leitura.confianca,
        "vagas": [_vaga(each, texto) for each in ensaio.vagas],
        "fecha": None if leitura is None or leitura.fechamento is None else texto[slice(*leitura.fechamento.trecho)],
    }


def _fim(nota: Nota, leitura: Leitura | None, limiares: Limiares) -> tuple[str, str | None]:
    looks_so, passed, why = passa(nota, limiares)
    if not passed:
        return "heuristica", why
    stage = "extracao" if looks_so and alcanca(nota.score, limiares.alta) else "classificacao"
    if leitura is None:
        return stage, None
    if not leitura.eh_oferta:
        return stage, MotivoDoDescarte.NAO_EH_OFERTA.value
    if stage == "classificacao" and not alcanca(leitura.confianca, limiares.classificacao):
        return stage, MotivoDoDescarte.CONFIANCA_BAIXA.value
    return "extracao", None if ofertadas(leitura) else MotivoDoDescarte.EXTRACAO_FALHOU.value


def _vaga(vaga: VagaDita, texto: str) -> dict[str, Any]:
    """Return each field of a vacancy with its value, its position in the text and the words at that position. A default
    value has no position and no words.
    """
    spans: Mapping[str, tuple[int, int]] = trechos(vaga)
    return {
        name: {
            "valor": value,
            "trecho": list(spans[name]) if name in spans else None,
            "palavras": texto[slice(*spans[name])] if name in spans else None,
        }
        for name, value in vaga_documento(vaga).items()
        if value is not None
    }
