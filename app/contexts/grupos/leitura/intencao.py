"""Is it an offer, and if not, what is it? Signs are counted; the first category that applies is told, with its reason."""

import re
from collections import Counter
from dataclasses import dataclass
from functools import cache
from itertools import pairwise

from app.contexts.grupos.leitura.folha import Folha
from app.contexts.grupos.leitura.marcas import Marca
from app.contexts.grupos.leitura.montagem import Montagem
from app.contexts.grupos.leitura.texto import Texto, chave
from app.contexts.grupos.leitura.tipos import Categoria
from app.contexts.grupos.leitura.vocabulario import Frases, palavras

BASTA = 3.3
_KINDS = ("oferta", "procura", "troca", "cede", "emprego", "nao_medico", "venda", "golpe", "aviso", "conversa")
_MEDIA = re.compile(
    r"\W*(?:\[?(?:figurinha|imagem|foto|video|audio|gif|sticker|documento|contato|localizacao|mensagem apagada|midia oculta"
    r"|arquivo(?: de midia)? oculto|enquete|(?:image|video|audio|sticker|gif|document) omitted|esta mensagem foi apagada"
    r"|voce apagou esta mensagem|mensagem de voz|ligacao de voz perdida)\]?)"
    r"(?:\W*\(?\d{1,2}:\d\d\)?)?\W*"
)
_FILE = re.compile(r"\W*[\w .()-]{1,80}\.(?:pdf|jpe?g|png|docx?|xlsx?|mp4|opus|ogg|webp|vcf)\W*(?:\(\w+ \w+\))?\W*")
_LINK_ALONE = re.compile(r"\s*(?:https?://|www\.)\S{1,500}\s*")
_RECEIPT = re.compile(
    r"\b(?:comprovante|recibo|nota fiscal (?:n|no|de)|nfs-?e|pix (?:enviado|recebido|realizado)|transferencia realizada)\b"
)
_SENTENCE = re.compile(r"\n|[.!?;] |[.!?]\n")


@dataclass(frozen=True, slots=True)
class Sinal:
    tipo: str
    inicio: int
    fim: int


@dataclass(frozen=True, slots=True)
class Juizo:
    categoria: Categoria
    confianca: float
    motivo: str


def sinais(texto: Texto) -> list[Sinal]:
    small = _miudas()
    words = [word for word in texto.palavras if word.texto not in small]
    return [Sinal(each.valor, words[each.inicio].inicio, words[each.fim - 1].fim) for each in _arvore().todas(words)]


def pedidos(texto: Texto, found: list[Sinal]) -> tuple[Marca, ...]:
    """The sentences in which somebody asks for a shift or wants no doctor; in a mixed message they give no vaga."""
    stops = [0, *(each.end() for each in _SENTENCE.finditer(texto.plano)), len(texto.plano)]
    marks = []
    for start, end in pairwise(stops):
        kinds = {each.tipo for each in found if start <= each.inicio < end}
        if "procura" in kinds:
            marks.append(Marca(start, end))
    return tuple(marks)


def julgar(texto: Texto, found: list[Sinal], folha: Folha, montagem: Montagem) -> Juizo:
    """``folha`` and ``montagem`` are what is left without the requests of others."""
    count = Counter(each.tipo for each in found)
    if (nothing := _sem_palavras(texto)) is not None:
        return Juizo(Categoria.OUTRO, 0.95, nothing)
    score = _pontos(folha, count)
    if (against := _contra(texto, found, count, folha, montagem, score)) is not None:
        return against
    if score >= BASTA:
        return Juizo(Categoria.OFERTA, _certeza(score - BASTA), "oferta")
    return _resto(texto, count, score)


def _pontos(folha: Folha, count: Counter[str]) -> float:
    """What an offer has: a day, a place, a shift, a price, somebody to call; and the words of one."""
    days = any(not each.feriado for each in folha.dias)
    hours = any(each.periodo or (each.das and each.ate) for each in folha.turnos)
    score = 1.0 * days + 1.0 * bool(folha.lugares) + 1.0 * hours
    score += 0.3 * (not hours and bool(folha.turnos)) + 0.7 * bool(folha.areas)
    score += 1.0 * bool(folha.precos or folha.combinar) + 0.8 * bool(folha.contatos) + 0.4 * bool(folha.pagamentos)
    score += 0.9 * min(count["oferta"] + 2 * count["cede"], 2)
    return score - 1.3 * min(count["conversa"], 3) - 0.8 * min(count["aviso"], 2)


def _contra(
    texto: Texto, found: list[Sinal], count: Counter[str], folha: Folha, montagem: Montagem, score: float
) -> Juizo | None:
    """What outweighs the signs of an offer."""
    solid = bool(montagem.abertas) and score >= BASTA + 1
    if count["nao_medico"] and not _doctor_wanted(texto, folha, found):
        return Juizo(Categoria.OUTRO, 0.9, "nao_medico")
    if count["procura"] and not (solid and _offers_besides(found)):
        return Juizo(Categoria.PROCURA, 0.9, "procura_vaga")
    if count["golpe"] >= 1 + solid and not (solid and count["golpe"] < 3):
        return Juizo(Categoria.SPAM, _certeza(count["golpe"]), "golpe")
    if count["venda"] and not solid:
        return Juizo(Categoria.PROPAGANDA, _certeza(count["venda"]), "venda")
    if (
        folha.fechados
        and any(not each.sinal for each in folha.fechados)
        and not montagem.abertas
        and not montagem.passadas
    ):
        if count["conversa"] and not montagem.fechadas:
            return None
        return Juizo(Categoria.AVISO, 0.9, "fechada")
    if (montagem.fechadas or folha.riscados) and not montagem.abertas:
        return Juizo(Categoria.AVISO, 0.9, "fechada")
    if count["troca"] and not count["cede"] and not _gives_away(texto, found):
        return Juizo(Categoria.OUTRO, 0.9, "troca")
    if count["emprego"] and not (solid and count["emprego"] == 1 and folha.precos):
        return Juizo(Categoria.OUTRO, 0.85, "emprego")
    return None


def _resto(texto: Texto, count: Counter[str], score: float) -> Juizo:
    if count["golpe"]:
        return Juizo(Categoria.SPAM, _certeza(count["golpe"]), "golpe")
    if count["venda"]:
        return Juizo(Categoria.PROPAGANDA, _certeza(count["venda"]), "venda")
    if count["aviso"] and count["aviso"] >= count["conversa"]:
        return Juizo(Categoria.AVISO, _certeza(count["aviso"]), "aviso")
    if _RECEIPT.search(texto.plano):
        return Juizo(Categoria.OUTRO, 0.8, "recibo")
    return Juizo(Categoria.CONVERSA, _certeza(BASTA - score), "poucos_sinais")


def _sem_palavras(texto: Texto) -> str | None:
    if not texto.palavras:
        return "sem_texto" if not any(ord(char) > 0x2000 for char in texto.plano) else None
    if _MEDIA.fullmatch(texto.plano) or _FILE.fullmatch(texto.plano):
        return "midia"
    return "link" if _LINK_ALONE.fullmatch(texto.plano) else None


def _doctor_wanted(texto: Texto, folha: Folha, found: list[Sinal]) -> bool:
    """ "equipe com enfermeiro" beside a wanted doctor is no nurse's vacancy."""
    sectors = frozenset(palavras()["areas"]["setores"])
    if any(texto.plano[each.inicio : each.fim] not in sectors for each in folha.areas):
        return True
    return any(word.texto in ("medico", "medica", "medicos", "plantonista") for word in texto.palavras)


def _offers_besides(found: list[Sinal]) -> bool:
    return any(each.tipo in ("oferta", "cede") for each in found)


def _gives_away(texto: Texto, found: list[Sinal]) -> bool:
    """The exchange is only a second wish: something is passed on or somebody is wanted too."""
    said = {chave(texto.plano[each.inicio : each.fim]).split()[0] for each in found if each.tipo == "oferta"}
    refused = any(texto.plano[each.inicio : each.fim].endswith("nao passo") for each in found)
    return not refused and bool(
        said
        & {
            "passo",
            "passando",
            "repasso",
            "estou",
            "to",
            "vendo",
            "abri",
            "abro",
            "preciso",
            "precisa",
            "vaga",
            "vagas",
            "cedo",
        }
    )


def _certeza(margin: float) -> float:
    return round(min(0.99, 0.7 + 0.1 * max(margin, 0.0)), 2)


@cache
def _miudas() -> frozenset[str]:
    return frozenset(palavras()["intencao"]["miudas"])


@cache
def _arvore() -> Frases[str]:
    """All the lists in one tree, without small words: of two phrases the longer wins, whatever its list."""
    tree = Frases[str]()
    small = _miudas()
    for kind in _KINDS:
        for frase in palavras()["intencao"][kind]:
            words = [word for word in chave(frase).split() if word not in small]
            tree.juntar(" ".join(words), kind)
    return tree
