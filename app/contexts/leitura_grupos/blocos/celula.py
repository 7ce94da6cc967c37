"""The content of a table cell: a day, a shift, a speciality, a place, a price, or a sign that marks the shift as open
or taken.
"""

import re
from enum import Enum, auto
from functools import cache, lru_cache

from app.contexts.leitura_grupos.blocos.escrita import Linha, dito
from app.contexts.leitura_grupos.texto.texto import MES, chave
from app.contexts.leitura_grupos.texto.vocabulario import Vocabulario, frases, palavras
from batuta.kernel import dataclass


class Tipo(Enum):
    VAZIA = auto()
    DIA = auto()
    SEMANA = auto()
    TURNO = auto()
    AREA = auto()
    LUGAR = auto()
    PRECO = auto()
    MES = auto()
    NUMERO = auto()
    ABERTA = auto()
    FECHADA = auto()
    VAGA = auto()
    OUTRA = auto()


_WD = r"(?:segunda|terca|quarta|quinta|sexta|sabado|domingo|seg|ter|qua|qui|sex|sab|dom)(?:[- ]?feira)?\.?"
_SEMANA = re.compile(rf"{_WD}|[2-6]a(?:[- ]?f(?:eira)?)?\.?")
_DIA = re.compile(
    rf"(?:{_WD}[ ,.(-]{{0,3}})?(?:dia )?(?P<d>\d{{1,2}}) ?(?P<m>[/.-] ?\d{{1,2}}(?:[/.-](?:20)?\d\d)?|/{MES})?"
    rf"(?:[ ,.(-]{{0,3}}{_WD})?\)?|hoje|amanha|depois de amanha"
)
_MES_SO = re.compile(rf"(?:escala (?:de )?)?{MES}(?: ?(?:/|de)? ?(?:20)?\d\d)?")
_HORA = r"\d{1,2}(?:h\d\d|:\d\d|h)?(?:s|rs)?"
_HORAS = re.compile(
    rf"(?:das? )?{_HORA} ?(?:-|as|a|x|ate) ?(?:as )?{_HORA}|0?7/1[39]|13/19|19/0?1|\d{{1,2}}h(?:\d\d)?/\d{{1,2}}h(?:\d\d)?"
)
_PALAVRA_DE_TURNO = (
    r"(?:plantao )?(?:sd|sn|dn|diurn[oa]s?|noturn[oa]s?|noites?|manhas?|tardes?|madrugada|cinderela|cind|dia|mt|24 ?h(?:s|rs|oras)?"
    r"|12 ?h(?:s|rs)?|6 ?h(?:s|rs)?|[dnmt])"
)
_TURNO = re.compile(
    rf"(?:{_PALAVRA_DE_TURNO}|{_HORAS.pattern})(?:[ /,+&e(-]{{1,3}}(?:{_PALAVRA_DE_TURNO}|{_HORAS.pattern})\)?){{0,4}}"
)
_TURNO_NO_FIM = re.compile(rf"(?P<antes>.{{2,60}}?)[ /(-]{{1,8}}(?P<turno>(?:{_PALAVRA_DE_TURNO}|{_HORAS.pattern}))\)?")
_TURNO_NO_INICIO = re.compile(rf"(?P<turno>(?:{_PALAVRA_DE_TURNO}))[ /(-]{{1,8}}(?P<depois>[a-z].{{2,60}})")
# A day with its shift: "04(D)", "08 SD/SN".
_VAGA = re.compile(rf"(?P<dia>\d{{1,2}}(?:/\d{{1,2}})?) ?[(\[:-]? ?(?P<turno>{_TURNO.pattern})[)\]]?")
_PRECO = re.compile(
    r"r?\$ ?\d[\d.,]*(?: ?(?:/ ?h(?:ora)?|k|mil))?|\d\.\d{3}(?:,\d\d)?|\d{3,4}(?:,\d\d)?(?: ?(?:/ ?h(?:ora)?"
    r"|reais))?|\d(?:[.,]\d{1,2})? ?k\d{0,3}"
)
_PESSOA = re.compile(r"(?:dr|dra|doutor|doutora)\b\.? ?[a-z].*")
_ABERTO = re.compile(
    r"\b(?:abert[ao]s?|descobert[ao]s?|falt(?:a|am|ando)|vag[ao]s?|livres?|disponive(?:l|is)|precis(?:a|o|ando|amos)|pendentes?|furos?"
    r"|sem (?:ninguem|medic[oa]|plantonista|cobertura|dono)|sos|urgente|em branco|procura(?:ndo)?|open"
    r"|a cobrir|cobrir|quem|pegar)\b"
)
_FECHADO = re.compile(
    r"\b(?:cobert[ao]s?|fechad[ao]s?|preenchid[ao]s?|ocupad[ao]s?|complet[ao]s?|ok|okay|ja tem"
    r"|tem (?:medic[oa]|gente|alguem|dono|plantonista)|fechou"
    r"|com (?:medic[oa]|gente|dono|plantonista)|escalad[ao]s?|ja foi|cheio|tomad[ao]s?|reservad[ao]s?"
    r"|resolvid[ao]s?|confirmad[ao]s?|lotad[ao]s?"
    r"|nao (?:precisa|falta|ha|tem)|garantid[ao]s?)\b"
)
_SINAL_ABERTO = frozenset("🆘🟢⭕❗❓🔓🆓🔵⚪🟡🟠⬜🔲◻🔴📣🚨●•○◯✳👉*?!")
_SINAL_FECHADO = frozenset("✅❌🔒🚫⛔✖☑✔✓")
_MARCADOR = re.compile(r"[➡▶►▸→➜➤🔹🔸◾📅🗓]\ufe0f?\s{0,2}(?=\w)")
_TRACO = re.compile(r"[-–—.·/ ]+")
_LINHA = re.compile(r"_{2,}")
_X = re.compile(r"x{1,3}|\(x\)|\[x\]")


@dataclass(slots=True, unsafe_hash=True)
class Celula:
    """A cell of a table row, with its start and end in the row. ``sinal`` is the sign in the cell, such as "x" or "-",
    that says whether a shift is open or taken.
    """

    linha: Linha
    plano: str
    tipo: Tipo
    inicio: int
    fim: int

    @property
    def sinal(self) -> str:
        if not self.plano:
            return ""
        return "-" if _TRACO.fullmatch(self.plano) else "x" if _X.fullmatch(self.plano) else self.plano


def celula(linha: Linha, inicio: int, fim: int, vocabulario: Vocabulario) -> Celula:
    """Return the cell in a range of a line, without surrounding spaces and decoration."""
    text = linha.texto
    while inicio < fim and text[inicio] in " \t*_\xa0\u200b\r" and not text.startswith("__", inicio):
        inicio += 1
    while fim > inicio and text[fim - 1] in " \t*_\xa0\u200b\ufe0f\r" and text[fim - 2 : fim] != "__":
        fim -= 1
    if (bullet := _MARCADOR.match(text, inicio, fim)) is not None:
        inicio = bullet.end()
    part = linha.parte(inicio, fim)
    plano = " ".join(part.plano.split())
    return Celula(part, plano, tipo(plano, part.texto, vocabulario), inicio, fim)


@cache
def _cabecas() -> frozenset[str]:
    return frozenset(chave(each).split()[0] for each in palavras()["lugares"]["cabecas"])


def tipo(plano: str, texto: str, vocabulario: Vocabulario) -> Tipo:
    if not plano:
        return Tipo.VAZIA
    if _TRACO.fullmatch(plano):
        return Tipo.FECHADA
    if _X.fullmatch(plano) or _LINHA.fullmatch(plano) or plano[0] in _SINAL_ABERTO:
        return Tipo.ABERTA
    if plano[0] in _SINAL_FECHADO or texto.startswith("~") or _PESSOA.fullmatch(plano):
        return Tipo.FECHADA
    if _SEMANA.fullmatch(plano):
        return Tipo.SEMANA
    if _TURNO.fullmatch(plano):
        return Tipo.TURNO
    if plano.isdigit() and len(plano) == 1:
        return Tipo.NUMERO
    if (day := _DIA.fullmatch(plano)) is not None and (day["d"] is None or 1 <= int(day["d"]) <= 31):
        return Tipo.DIA
    if (shift := _VAGA.fullmatch(plano)) is not None and 1 <= int(shift["dia"].split("/")[0]) <= 31:
        return Tipo.VAGA
    if _PRECO.match(plano) and len(plano) < 30:
        return Tipo.PRECO
    if _MES_SO.fullmatch(plano):
        return Tipo.MES
    if vocabulario.especialidades.valor(plano) is not None:
        return Tipo.AREA
    if vocabulario.hospitais.valor(plano) is not None or (plano.split()[0] in _cabecas() and " " in plano):
        return Tipo.LUGAR
    return estado(plano) or Tipo.OUTRA


def estado(plano: str) -> Tipo | None:
    if len(plano) > 40:
        return None
    return Tipo.FECHADA if _FECHADO.search(plano) else Tipo.ABERTA if _ABERTO.search(plano) else None


def esta_aberta(cell: Celula, legenda: dict[str, bool]) -> bool:
    """Return whether a table cell marks an open shift. If the message has a legend, the legend takes precedence over
    the usual meaning of a sign.
    """
    if (meaning := legenda.get(cell.sinal)) is not None:
        return meaning
    match cell.tipo:
        case Tipo.VAZIA | Tipo.FECHADA | Tipo.OUTRA:
            return False
        case Tipo.NUMERO:
            return cell.plano != "0"
        case _:
            return True


_ENTRE = r"['\")\]]? {0,2}(?:=|:|->|>|-|\be\b|\bsao\b|\bsignifica\b|\besta\b|\bquer dizer\b|\bonde\b)? {0,2}"


@lru_cache(maxsize=512)
def _legenda(sign: str) -> re.Pattern[str]:
    """Return the pattern that finds a sign's explanation in a legend. Each sign's pattern is compiled once, because the
    same signs occur in many tables.
    """
    named = r"(?:em branco|vazi[ao]s?)" if sign == "" else re.escape(sign)
    return re.compile(rf"(?:^|[\n,;/(|.:]) {{0,3}}['\"(\[]?{named}(?![a-z0-9]){_ENTRE}(?P<frase>[^/;,|\n.()]{{2,40}})")


def legendas(rest: str, signs: frozenset[str]) -> dict[str, bool]:
    """Return the meaning of each sign in a message's legend: True for an open shift ("x = descoberto"), False for a
    taken shift ("- completo").
    """
    found: dict[str, bool] = {}
    for sign in signs | {""}:
        for each in _legenda(sign).finditer(rest):
            meant = estado(each["frase"].strip())
            if meant in (Tipo.ABERTA, Tipo.FECHADA):
                found.setdefault(sign, meant is Tipo.ABERTA)
                break
    return found


def partes(cell: Celula, vocabulario: Vocabulario) -> list[tuple[Tipo, Linha]]:
    """Split a table cell that contains a shift together with a hospital ("HRSJ SD"), a speciality ("SN Pediatria") or a
    day.
    """
    if cell.tipo is Tipo.VAGA and (both := _VAGA.fullmatch(cell.linha.plano.strip())) is not None:
        return [
            (Tipo.DIA, cell.linha.parte(*both.span("dia"))),
            (Tipo.TURNO, _turno(cell.linha.parte(*both.span("turno")))),
        ]
    if cell.tipo is not Tipo.OUTRA and cell.tipo is not Tipo.LUGAR:
        return [(cell.tipo, _turno(cell.linha) if cell.tipo is Tipo.TURNO else cell.linha)]
    plano = cell.linha.plano
    for pattern, other in ((_TURNO_NO_FIM, "antes"), (_TURNO_NO_INICIO, "depois")):
        if (found := pattern.fullmatch(plano)) is not None and not _UF.search(plano):
            shift = cell.linha.parte(*found.span("turno"))
            rest = cell.linha.parte(*found.span(other))
            kind = tipo(" ".join(rest.plano.split()), rest.texto, vocabulario)
            return [(Tipo.TURNO, _turno(shift)), (kind, rest)]
    return [(cell.tipo, cell.linha)]


_UF = re.compile(r"[/-] ?mt$")
_LETRAS = {"d": "SD", "n": "SN", "m": "manhã", "t": "tarde", "dn": "SD e SN"}


def _turno(linha: Linha) -> Linha:
    """Replace a single letter that denotes a shift with the usual abbreviation: "D" becomes "SD" (day shift)."""
    letters = re.findall(r"[a-z]+", linha.plano)
    if letters and all(each in _LETRAS for each in letters) and not re.search(r"\d", linha.plano):
        return dito(" e ".join(_LETRAS[each] for each in letters), linha)
    if re.fullmatch(r"(0?[678]|19)h? ?(?:-|as|a|/) ?(?:\1)h?", linha.plano.strip()):
        return dito("24h", linha)
    if (found := re.match(r"[dnmt](?=[ (]+\d)", linha.plano)) is not None:
        return dito(linha.texto[1:], linha) if found else linha
    return linha


_ROTULOS = {
    Tipo.DIA: "data datas dia dias dt quando",
    Tipo.TURNO: "turno turnos periodo horario horarios hora horas plantao tipo",
    Tipo.AREA: "setor setores especialidade especialidades area espec esp clinica linha vaga funcao",
    Tipo.LUGAR: "local hospital unidade onde lugar upa hosp cidade",
    Tipo.PRECO: "valor valores r preco rs pgto remuneracao pagamento bruto",
    Tipo.OUTRA: "situacao status medico medica plantonista escalado quem nome obs observacao doutor responsavel",
    Tipo.NUMERO: "vagas qtd qtde quantidade faltam falta",
    Tipo.SEMANA: "sem semana",
}
_POR_ROTULO = {word: kind for kind, words in _ROTULOS.items() for word in words.split()}
_HORA_NO_ROTULO = re.compile(r"/ ?h(?:ora)?\b|\bhora\b|\bpor hora\b")


def rotulo(cell: Celula) -> Tipo | None:
    """Return the kind of values in a table column, judging by the column's heading, such as "data" or "R$/hora"."""
    words = re.findall(r"[a-z]+", cell.plano)
    if not 1 <= len(words) <= 4 or re.search(r"\d", cell.plano):
        return None
    if words[0] in ("r", "rs", "valor", "preco") or "$" in cell.plano:
        return Tipo.PRECO
    if (words[0] == "dia" and words[1:2] in (["sem"], ["semana"])) or cell.plano == "dia da semana":
        return Tipo.SEMANA
    if len(words) > 1 and words[0] in ("upa", "hospital", "hosp") and words[1] not in _POR_ROTULO:
        return None  # the name of a place
    return _POR_ROTULO.get(words[0]) if len(words) < 3 else None


def por_hora(cell: Celula) -> bool:
    return _HORA_NO_ROTULO.search(cell.plano) is not None


__all__ = ["Celula", "Tipo", "celula", "esta_aberta", "frases", "legendas", "partes", "por_hora", "rotulo"]
