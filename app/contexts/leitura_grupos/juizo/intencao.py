"""Find the category of a group message by counting signals. The categories are tested in a fixed order; the first one
that applies is returned with its reason.
"""

import re
from collections import Counter

from app.contexts.leitura_grupos.juizo.sinais import Sinal, pedidos
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Turno, apagar
from app.contexts.leitura_grupos.montagem.montar import Montagem
from app.contexts.leitura_grupos.texto.texto import Texto, chave, contem
from app.contexts.leitura_grupos.tipos import Categoria
from batuta.kernel import dataclass

BASTA = 3.3
# Number of other words allowed per day in a message with only a shift, and the lowest plausible price of a shift in
# reais.
OTHER_WORDS, LEAST = 3, 400
_WORD = re.compile(r"[a-z]{3,}")
_MEDIA = re.compile(
    r"\W*(?:\[?(?:figurinha|imagem|foto|video|audio|gif|sticker|documento|contato|localizacao(?: em tempo real)?|mensagem apagada"
    r"|midia oculta|arquivo(?: de midia)? oculto|enquete|(?:image|video|audio|sticker|gif|document) omitted"
    r"|esta mensagem foi apagada"
    r"|voce apagou esta mensagem|mensagem de voz|ligacao de voz perdida)\]?)"
    r"(?:\W*\(?\d{1,2}:\d\d\)?)?\W*"
)
_FILE = re.compile(
    r"\W*[\w .()-]{1,80}\.(?:pdf|jpe?g|png|docx?|xlsx?|mp4|opus|ogg|webp|vcf)"
    r"\W*+(?:(?:\d+ (?:paginas?|kb|mb)|(?<=\()\w+ \w+\))\W*+)?"
)
# A text that contains none of them cannot match ``_FILE`` and is not searched.
_EXTENSIONS = (".pdf", ".jp", ".png", ".doc", ".xls", ".mp4", ".opus", ".ogg", ".webp", ".vcf")
_LINK_ALONE = re.compile(r"\s*(?:https?://|www\.)\S{1,500}\s*")
_RECEIPT = re.compile(
    r"\b(?:comprovante|recibo|nota fiscal (?:n|no|de)|nf(?: n[o.]?)? ?\d{3,}|nfs-?e|pix (?:enviado|recebido|realizado)"
    r"|transferencia realizada)\b"
)
_RECEIPT_FIRST = re.compile(r"[\W_]{0,8}(?:comprovante|recibo|nfs-?e|nota fiscal|pix (?:enviado|recebido|realizado))\b")
_LINK = re.compile(r"https?://|www\.|\.com\b|@[a-z]")
_LOW_PRICE = re.compile(r"\b\d{1,3}(?:,\d\d)? reais\b|\b\d{1,3},[59][09]\b|r\$ ?\d{1,2}(?:,\d\d)?\b(?![.\d])")
_PER_SHIFT = re.compile(r"(?:\bpor |/ ?|\bcada |\bp/ ?|\bo )plantao\b")
# Matches "preciso do dia 18": the author wants a day to work, not a doctor.
_OF_A_DAY = re.compile(r" (?:d[oae]|n[oa]|pelo|pela|pro|pra) (?:dia|noite|manha|tarde|seg|ter|qua|qui|sex|sab|dom|\d)")
# Matches a stranger's request for money: "troquei de número, me faz um pix".
_NEW_NUMBER = re.compile(r"\b(?:troquei|mudei) (?:de |o |meu |o meu )?(?:numero|celular|telefone|whats\w*)\b")
_ASKS_FOR_PIX = re.compile(
    r"\b(?:faz|fazer|faca|manda|mandar|envia|enviar)\b[^.!?\n]{0,20}\bpix\b|\bpix de (?:r\$ ?)?\d"
)
_WARNS = re.compile(r"\b(?:golp|clon|cuidado|nao (?:e|sou|fui) eu|fraude|falso|alert|denunci)")
_PLACE_ALONE = re.compile(r"[\W_]{0,8}(?:localizacao|endereco|como chegar)\b[^\n]{0,120}")
_STAFF = re.compile(r"\b(?:equipe|com|mais|apoio|temos|tem|e|falar|enf)\b[ :+a-z0-9]{0,20}$")
_DOCTORS = ("medico", "medica", "medicos", "plantonista", "plantonistas")
_ANIMALS = ("crmv", "hospital veterinario", "clinica veterinaria")
_DOCTOR = re.compile(
    r"cm|go|g\.o\.?|ped|[a-z ./]*(?:ista|iatra|etra|ologo|ologa|cirurgiao|cirurgia|clinico|neonato)s?(?: geral| pediatric[oa])?"
)


@dataclass(frozen=True, slots=True)
class Juizo:
    categoria: Categoria
    confianca: float
    motivo: str


def julgar(texto: Texto, found: list[Sinal], count: Counter[str], folha: Folha, montagem: Montagem) -> Juizo:
    """Return the category of a message. ``folha`` (the recognised fields) and ``montagem`` (the vacancies) must exclude
    sentences in which the author asks for a shift. ``count`` is the number of signals of each kind.
    """
    if (nothing := _sem_palavras(texto)) is not None:
        return Juizo(Categoria.OUTRO, 0.95, nothing)
    if _PLACE_ALONE.fullmatch(texto.plano) and not (folha.dias or folha.turnos or folha.precos or "?" in texto.plano):
        return Juizo(Categoria.OUTRO, 0.8, "localizacao")
    score = _pontos(folha, count)
    if (against := _contra(texto, found, count, folha, montagem, score)) is not None:
        return against
    dated = any(not each.feriado for each in folha.dias) and any(not each.fraca for each in folha.areas)
    called = bool(folha.contatos and folha.turnos) or (dated and not count["conversa"] + count["aviso"])
    whole = bool(folha.precos and count["tema"] and called) and not count["venda"]
    named = bool(folha.lugares) or count["oferta"] + count["cede"] > 0 or whole
    ours = folha.lugares or folha.areas or count["tema"] or any(each.periodo for each in folha.turnos)
    if (score >= BASTA and named and ours) or _so_o_plantao(texto, folha, count):
        return Juizo(Categoria.OFERTA, _certeza(score - BASTA), "oferta")
    return _resto(texto, folha, count, score)


def _pontos(folha: Folha, count: Counter[str]) -> float:
    """Score a text by the elements of an offer that it contains: day, place, shift, price, contact and
    typical words.
    """
    days = any(not each.feriado for each in folha.dias)
    hours = any(each.periodo or (each.das and each.ate) for each in folha.turnos)
    score = 1.0 * days + 1.0 * bool(folha.lugares) + 1.0 * hours
    score += 0.3 * (not hours and bool(folha.turnos)) + 0.7 * any(not each.fraca for each in folha.areas)
    score += 1.0 * bool(folha.precos or folha.combinar) + 0.8 * bool(folha.contatos) + 0.4 * bool(folha.pagamentos)
    score += 1.2 * min(count["oferta"] + 2 * count["cede"], 2) + 0.6 * bool(count["tema"])
    return score - 1.1 * min(count["conversa"], 3) - 0.5 * min(count["aviso"], 2)


def _so_o_plantao(texto: Texto, folha: Folha, count: Counter[str]) -> bool:
    """Return whether the text consists of a shift's day, hours and price and few other words.

    Example: "PSNX 12/03 19-7 1.800 clínico".
    """
    days = any(not each.feriado for each in folha.dias)
    paid = any(folha.areas or each.reais >= LEAST for each in folha.precos)
    if not (days and paid and any(_is_shift(each) for each in folha.turnos)) or "?" in texto.plano:
        return False
    if count["conversa"] + count["aviso"] + count["venda"] + count["golpe"] + count["emprego"]:
        return False
    people = [each.nome for each in folha.contatos if each.nome is not None]
    rest = apagar(folha.livre, (*folha.turnos, *folha.precos, *folha.areas, *folha.pagamentos, *people))
    return len(_WORD.findall(rest)) <= OTHER_WORDS * len(folha.dias)


def _is_shift(turno: Turno) -> bool:
    """Return whether a period or a pair of hours describes a shift: a named period, or a start and an end that are more
    than three hours apart.
    """
    if turno.das is None or turno.ate is None:
        return turno.periodo is not None
    return (turno.ate.hour - turno.das.hour) % 24 not in (1, 2, 3)


def _contra(
    texto: Texto, found: list[Sinal], count: Counter[str], folha: Folha, montagem: Montagem, score: float
) -> Juizo | None:
    """Return a category other than offer if its signals outweigh those of an offer. Otherwise return None."""
    solid = bool(montagem.abertas) and score >= BASTA + 1
    if _RECEIPT_FIRST.match(texto.plano) and not count["oferta"] + count["cede"]:
        return Juizo(Categoria.OUTRO, 0.9, "recibo")
    if not solid and _asks_for_pix(texto):
        return Juizo(Categoria.SPAM, 0.9, "pede_pix")
    if (
        count["aviso"] > 1
        and not count["golpe"]
        and not (count["oferta"] + count["cede"] or folha.contatos or folha.combinar)
    ):
        return Juizo(Categoria.AVISO, _certeza(count["aviso"]), "aviso") if not count["conversa"] else None
    wanted = count["oferta"] + count["tema"] + count["procura"] + len(folha.precos) + len(folha.turnos)
    if count["nao_medico"] and wanted and not _asks_for_doctor(texto, folha, found):
        return Juizo(Categoria.OUTRO, 0.9, "nao_medico")
    of_other_things = count["venda"] > count["troca"] or (count["aviso"] > 1 and not folha.dias and not folha.lugares)
    if count["troca"] and not count["cede"] and not of_other_things and not _gives_away(texto, found):
        return Juizo(Categoria.OUTRO, 0.9, "troca")
    if count["procura"] and count["venda"] <= count["procura"] and not (solid and _also_offers(texto, found, folha)):
        return Juizo(Categoria.PROCURA, 0.9, "procura_vaga")
    if count["golpe"] > 1 and not solid:
        return Juizo(Categoria.SPAM, _certeza(count["golpe"]), "golpe")
    placed = bool(folha.dias) and (bool(folha.lugares) or any(not each.fraca for each in folha.areas))
    if count["venda"] > count["oferta"] + count["cede"] + placed and score >= BASTA:
        return Juizo(Categoria.PROPAGANDA, _certeza(count["venda"]), "venda")
    if not montagem.abertas and _is_closed(folha, montagem, count):
        return Juizo(Categoria.AVISO, 0.9, "fechada")
    talk = count["conversa"] and not (folha.precos or folha.contatos)
    if count["emprego"] > max(count["venda"], talk) and not (
        solid and (count["emprego"] == 1 or _PER_SHIFT.search(texto.plano))
    ):
        return Juizo(Categoria.OUTRO, 0.85, "emprego")
    return None


def _asks_for_pix(texto: Texto) -> bool:
    """Return whether someone with a new number asks for money. A warning about such messages is a notice."""
    plano = texto.plano
    asks = _NEW_NUMBER.search(plano) is not None and _ASKS_FOR_PIX.search(plano) is not None
    return asks and _WARNS.search(plano) is None


def _is_closed(folha: Folha, montagem: Montagem, count: Counter[str]) -> bool:
    if montagem.fechadas or folha.riscados:
        return True
    said = any(not each.sinal for each in folha.fechados)
    return said and not count["conversa"] and not montagem.passadas


def _resto(texto: Texto, folha: Folha, count: Counter[str], score: float) -> Juizo:
    """Return the category with the most signals for a text that is not an offer. In case of a tie, return the more
    serious category.
    """
    sold = folha.contatos or folha.precos or _LINK.search(texto.plano) or _LOW_PRICE.search(texto.plano)
    sells = count["venda"] + 0.5 if count["venda"] and sold else count["venda"] - 0.6
    kinds = (
        (1.5 * count["golpe"], Categoria.SPAM, "golpe"),
        (sells, Categoria.PROPAGANDA, "venda"),
        (1.0 * count["aviso"] - 0.5 * ("?" in texto.plano), Categoria.AVISO, "aviso"),
        (1.0 * count["conversa"], Categoria.CONVERSA, "conversa"),
    )
    most, kind, why = max(kinds, key=lambda each: each[0])
    if most > 0.9:
        return Juizo(kind, _certeza(most), why)
    if _RECEIPT.search(texto.plano):
        return Juizo(Categoria.OUTRO, 0.8, "recibo")
    return Juizo(Categoria.CONVERSA, _certeza(BASTA - score), "poucos_sinais")


def _sem_palavras(texto: Texto) -> str | None:
    if not texto.palavras:
        return "sem_texto" if not any(ord(char) > 0x2000 for char in texto.plano) else None
    if len(texto.plano) < 200:
        is_file = contem(texto.plano, _EXTENSIONS) and _FILE.fullmatch(texto.plano) is not None
        if is_file or _MEDIA.fullmatch(texto.plano):
            return "midia"
    return "link" if _LINK_ALONE.fullmatch(texto.plano) else None


def _asks_for_doctor(texto: Texto, folha: Folha, found: list[Sinal]) -> bool:
    """Return whether the message asks for a doctor, even though it names other professions, as in "equipe com
    enfermeiro".
    """
    others = [each for each in found if each.tipo == "nao_medico"]
    if all(_STAFF.search(texto.plano, max(0, each.inicio - 25), each.inicio) for each in others):
        return True
    of_animals = any(chave(texto.plano[each.inicio : each.fim]) in _ANIMALS for each in others)
    apart = [
        each
        for each in folha.areas
        if not any(one.inicio - 2 <= each.fim and each.inicio <= one.fim + 2 for one in others)
    ]
    if any(_DOCTOR.fullmatch(texto.plano, each.inicio, each.fim) for each in apart if not each.fraca):
        return True
    return any(
        word.texto in (_DOCTORS[:3] if of_animals else _DOCTORS)
        and not any(each.inicio - 2 <= word.fim and word.inicio <= each.fim + 2 for each in others)
        for word in texto.palavras
    )


def _also_offers(texto: Texto, found: list[Sinal], folha: Folha) -> bool:
    """Return whether a message that asks for a shift also offers one: days precede the request, or words typical of an
    offer occur outside the request.
    """
    asked = pedidos(texto, found)
    offers = [each for each in found if each.tipo in ("oferta", "cede")]
    if any(not any(mark.inicio <= each.inicio < mark.fim for mark in asked) for each in offers):
        return True
    return any(each.inicio < asked[0].inicio for each in folha.dias)


def _gives_away(texto: Texto, found: list[Sinal]) -> bool:
    """Return whether a message about a swap also gives a shift away or asks for a doctor."""
    said = {
        chave(texto.plano[each.inicio : each.fim]).split()[0]
        for each in found
        if each.tipo == "oferta" and not _OF_A_DAY.match(texto.plano, each.fim)
    }
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
