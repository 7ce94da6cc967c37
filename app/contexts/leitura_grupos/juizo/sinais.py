"""Find signals that indicate the subject of a group message: phrases from the word lists, and patterns that depend on
the words around them.
"""

import re
from bisect import bisect_right
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from itertools import product

from app.contexts.leitura_grupos.marcas.marca import Marca
from app.contexts.leitura_grupos.texto.texto import Texto, achados, chave
from app.contexts.leitura_grupos.texto.vocabulario import Frases, palavras
from batuta.kernel import dataclass

_KINDS = ("oferta", "tema", "procura", "troca", "cede", "emprego", "nao_medico", "venda", "golpe", "aviso", "conversa")
_AVAILABLE = re.compile(r"\bdisponive(?:l|is)\b|\ba disposicao\b")
_PERSON = re.compile(
    r"(?:ista|iatra|etra|ologa|ologo|cirurgiao|cirurgia|clinic[oa]|residente|medic[oa]|\bdra?|doutora?|\br[1-5]"
    r"|\b(?:meu|minha) (?:irma|irmao|prim[oa]|esposa|marido|filh[oa]|namorad[oa]|amig[oa]|noiv[oa]|cunhad[oa]))\b"
)
_WANTED = re.compile(
    r"\b(?:alguem|algum|alguma|vagas?|plantao|plantoes|quem|precis[a-z]{1,6}|horarios?|datas?|busc[a-z]{1,5}|temos|tem)\b"
)
_SELF = re.compile(
    r"(?<!deposito )(?<!aporte )\bmin(?:imo)?\.?:? (?:de )?(?:r\$ ?)?(?:\d{3,4}\b|\d\.\d{3})|^[\W_]{0,6}disponi(?:bilidade|vel)\b"
    r"(?! (?:(?:de )?(?:plant|vaga|sn|sd)|d[oa]s? |n[oa]s? |[a-z]{2,12} (?:no|na) ))",
    re.MULTILINE,
)
_SEEKS = re.compile(
    r"\b(?:(?P<eu>procuro|busco|estou procurando|to procurando|atras de|em busca de|a procura de)"
    r"|procurando|buscando|busca|procura)\b"
)
_PERSON_WANTED = re.compile(
    r"(?:ista|iatra|etra|cirurgiao|clinic[oa]|medic[oa]|plantonista|dentista|terapeuta|enfermeir[oa]|alguem|colega"
    r"|substitut[oa]|gente|pessoa|tecnic[oa]|contador|apartamento|apto|quarto|casa|carro|imovel|consultorio|dupla|quem)s?\b"
)
_DOCTOR_WANTED = re.compile(r"(?:ista|iatra|cirurgiao|clinic[oa]|medic[oa]|plantonista|substitut[oa])")
_ASKS = re.compile(
    r"\b(?:tem|teria|ha|existe|abriu|sobrou|rola|surgiu|esta precisando|ta precisando|estao precisando|contratando)\b"
    r"(?![^.!?\n]{0,80}\b(?:quem|alguem|interess|dispon))"
    r"[^.!?\n]{0,40}\b(?:vagas?|plantao|plantoes|escala|plantonistas?|medicos?|sd|sn|noturno|diurno)\b[^.!?\n]{0,50}\?"
)
_FOR_SHIFTS = re.compile(
    r"(?<!alguem )(?<!quem )\b(?:disponive(?:l|is)|(?:fico|estou|to) a disposicao) (?:p/|para|pra|p) (?:os |as |fazer |realizar )?"
    r"(?:plantao|plantoes|cobertura|coberturas|sobreaviso|escala)\b"
)
_NEEDS_SHIFTS = re.compile(r"\bprecis(?:o|ando) (?:de )?(?:\d{1,2}|um|uns|dois|duas|tres|mais) plant(?:ao|oes)\b")
_GETS_ME = re.compile(r"\bquem me (?:consegue|arruma|arranja|descola|passa)\b")
_MINE = re.compile(
    r"\A[\W_]{0,4}(?:eu )?(?:quero|pego|assumo|fico com) (?:ess[ea]|est[ea]|o d[oae] |o s[dn]\b|a vaga|o dia|a noite)"
)
_CLAIMED = re.compile(
    r"\A(?:[ \t]*>[^\n]*\n)+[\W_]{0,4}(?:eu )?(?:quero|pego|assumo|fico|topo|aceito|posso|tenho interesse|me interess[ae])\b"
    r"[^\n]{0,40}\Z"
)
_ACCEPTS = re.compile(
    r"\A[\W_]{0,4}(?:eu )?(?:aceito|topo|pego|faco) (?:plantao |plantoes )?(?:de )?"
    r"(?:24h|12h|sd|sn|noturnos?|diurnos?|fds|qualquer)\b"
)
_FREE_DAYS = re.compile(r"\A[\W_]{0,4}(?:dias? )[^.!?\n]{1,40}\blivres?\b *(?:[.,;!\n]|$)(?![^\n]*\d\.?\d{2})")
_STILL = re.compile(
    r"\bainda (?:esta |ta |tem )?(?:de pe|disponive(?:l|is)|em aberto|abert[ao]s?|valendo|livres?)\b[^.!?\n]{0,20}\?"
)
_IF_ANY = re.compile(
    r"\bse (?:sobrar|surgir|aparecer|abrir|rolar|tiver (?:algum|alguma|plantao|vaga|escala))\b"
    r"[^.!?\n]{0,80}\b(?:avis|cham|lembr|da um toque|me da|pode me)"
)
_WANTS = re.compile(
    r"\b(?:ta|esta|to|estou|anda|estamos) (?:querendo|precisando(?: de)?|interessad[oa] em|a ?fim de)"
    r"(?: (?:dar|pegar|fazer|uns|um|mais)){0,3} (?:plantao|plantoes|escala|noturnos?|diurnos?)\b"
)
_ANYONE_WITH = re.compile(
    r"\balguem\b[^.!?\n]{0,30}\b(?:com|tem|tenha|passando)(?: (?:algum|alguma|uns|umas|um|uma))? "
    r"(?:plantao|plantoes|vagas?|noturnos?|diurnos?)\b[^.!?\n]{0,60}\?"
)
_IF_WANTED = re.compile(r"\bsabe[m]? se (?:(?:o|a) )?(?:[a-z]{2,12} )?(?:tao|estao|ta|esta) precisando\b")
_PASSING = re.compile(
    r"\b(?:alguem|algum colega)(?: ai)? passando (?:o |a |dia |pra frente )?(?:\d|plant|reveillon|natal)"
)
_KNOWS_OF = re.compile(
    r"\b(?:(?:alguem|vcs|voces|quem) (?:sabe|conhece)|sabem|conhecem)(?: de)?(?: algum| alguma)? "
    r"(?:hospital|lugar|clinica|upa|servico|local|empresa|escala)\b"
    r"[^.!?\n]{0,40}\b(?:precis|contrat|com vaga|com escala|abrindo|querendo)"
)
_FREE = re.compile(r"\b(?:tenho|estou|to|fico)\b[^.!?\n]{0,30}\blivres?\b")
_HAS_DAYS = re.compile(
    r"\btenho disponive(?:l|is) (?:os |as )?(?:dias?|noites?|datas?|manhas?|tardes?)\b"
    r"(?![^.!?\n]{0,80}(?: n[oa]s? |r\$|\d\.\d{3}|\b\d{4}\b))"
)
_MONTHLY = re.compile(r"/ ?mes\b|\bpor mes\b|\bao mes\b")
_WEEKLY = re.compile(
    r"[1-4](?<!\w.)(?:(?:(?<=1)[026]|(?<=2)[04]|(?<=3)[026]|(?<=4)[04]) ?h(?:oras|s)? ?(?:semana|/ ?sem|por sem)"
    r"|(?<!:.)(?:(?<=3)0|(?<=4)[04]) ?h(?:oras|s)?\b)"
)
_SALARY = re.compile(
    r"\bmensal(?: de)?[ :]{1,2}(?:r\$ ?)?\d{1,2}(?:[.,]\d{1,3})? ?(?:mil|k)?\b"
    r"|\b(?:contrata(?:-se| se|mos)?|vaga (?:de|para|pra)) coordenador[a]?\b"
)
_DOUBLES = re.compile(
    r"\b(?:manda|mande|deposit[ae]|envi[ae]|transfir?[ae]|transfere|invist[ae]|investe|coloc[ae]|bota) "
    r"(?:so |apenas )?(?:r\$ ?)?\d[\d.]*"
    r"[^.!?\n]{0,30}\b(?:receb[ae]|saca|saque|ganh[ae]|vira|volta)\b"
)
_RULES = re.compile(r"\A[\W_]{0,6}regras?(?: d[oe] grupo)?\b ?[:!-]")
_PAID = re.compile(
    r"\bpagamentos?\b[^.\n]{0,40}\b(?:liberad|realizad|creditad|efetuad|sera|serao|program|em conta|ja caiu)"
)
_ROTA = re.compile(
    r"\bescala\b[^.\n]{0,40}\b(?:publicad|fechad|pronta|liberad|no drive|em anexo|atualizad|ja (?:esta )?disponivel|sai\b|saira\b)"
)
_PLACE_FOR = re.compile(r"\bvagas? (?:de|para|p/|pra|p|em) ")
_LAST = re.compile(r"\b(?:segunda|terca|quarta|quinta|sexta|sabado|domingo|semana|mes|ano|plantao) passad[oa]\b")
_LAUGHS = re.compile(r"\bk{3,}\b|\b(?:ha){2,}h?\b|\b(?:rs){2,}\b")
_ANYONE = re.compile(
    r"\balguem (?:pra|para|pro|p/|que|q) |\b(?:alguem|algum colega|quem)[ ?!.]{0,5}$|\balguem ?\?", re.MULTILINE
)
_INSTALMENTS = re.compile(r"\b(?:em|ate) (?:ate )?\d{1,2} ?x\b")
# Matches a course that is the subject of the message and not a requirement for the doctor.
_COURSE = re.compile(
    r"\A[\W_]{0,8}(?:(?:curso|treinamento|certificacao|turma|provedor)s? )?(?:de |do )?"
    r"(?:acls|atls|pals|bls|phtls|itls|fccs|nals|also)\b"
    r"(?![^\n]{0,25}\b(?:obrig|desej|exig|necess|em dia|valid|atualiz))"
)
_SELLS = re.compile(
    r"^[\W_]{0,6}(?:vendo|vende[ -]se|alugo|aluga[ -]se|(?:passo|passa[ -]se|repasso) (?:o )?ponto"
    r"|(?:passo|repasso) (?:a )?minha(?! (?:escala|noite|vaga|tarde|manha|data|parte|cobertura|semana|"
    r"segunda|terca|quarta|quinta|sexta|sala|porta|uti|\d)))\b"
    r"(?! (?:meus? |os? |um |1 |esse |este )?(?:plant|sd\b|sn\b|notur|diurn|24h|12h|cinderela|vaga|lugar|turno))",
    re.MULTILINE,
)
# Threats and demands to act immediately. They count only in a message with a web address.
_THREAT = re.compile(r"\b(?:sera|serao|ficara|foi|esta) (?:suspens|bloquead|cancelad|encerrad|desativad)[ao]s?\b")
_FETCH = re.compile(r"\b(?:atualize|regularize|valide|desbloqueie|reative|confirme seus?)\b")
_WELCOME = re.compile(r"\b(?:podem? ser|aceit[a-z]{1,4}|serve|inclusive|(?:ideal|ok|bom) p(?:ara|ra|/)) (?:ate )?$")
# Each pattern with letters that every match contains. A text without these letters is not searched.
_PATTERNS = (
    ("procura", _SELF, ("min", "dispon")),
    ("procura", _ASKS, ("?",)),
    ("procura", _FREE, ("livre",)),
    ("procura", _STILL, ("ainda",)),
    ("procura", _NEEDS_SHIFTS, ("precis",)),
    ("procura", _GETS_ME, ("quem me",)),
    ("procura", _MINE, ("quero", "pego", "assumo", "fico")),
    ("procura", _CLAIMED, (">",)),
    ("procura", _ACCEPTS, ("aceito", "topo", "pego", "faco")),
    ("procura", _FREE_DAYS, ("livre",)),
    ("procura", _IF_ANY, ("se ",)),
    ("procura", _WANTS, ("quer", "precis", "interess", "fim de")),
    ("procura", _ANYONE_WITH, ("alguem",)),
    ("procura", _KNOWS_OF, ("sabe", "conhece")),
    ("procura", _FOR_SHIFTS, ("dispo",)),
    ("procura", _HAS_DAYS, ("dispon",)),
    ("procura", _IF_WANTED, ("precisando",)),
    ("procura", _PASSING, ("passando",)),
    ("emprego", _MONTHLY, ("mes",)),
    ("emprego", _WEEKLY, ("sem", "30", "40", "44")),
    ("emprego", _SALARY, ("mensal", "coordenador")),
    ("golpe", _DOUBLES, ("rec", "sac", "saq", "ganh", "vira", "volta")),
    ("aviso", _RULES, ("regra",)),
    ("venda", _INSTALMENTS, ("x",)),
    ("venda", _COURSE, ("ls", "fccs")),
    ("venda", _SELLS, ("vend", "alug", "ponto", "minha")),
    ("oferta", _ANYONE, ("algu", "quem")),
    ("oferta", _PLACE_FOR, ("vaga",)),
    ("conversa", _LAST, ("passad",)),
    ("conversa", _LAUGHS, ("kkk", "haha", "rsrs")),
    ("aviso", _PAID, ("pagamento",)),
    ("aviso", _ROTA, ("escala",)),
)
# Matches a denied signal: "troca não, é vaga mesmo".
_DENIED = re.compile(r" nao ?[,.;:!]")
_SENTENCE_END = re.compile(r"(?<!\bdr)(?<!\bdra)(?<!\bsr)(?<!\bsra)\. ")
_SENTENCE = re.compile(r"\n|[.!?;] |[.!?]\n")


@dataclass(slots=True, unsafe_hash=True)
class Sinal:
    tipo: str
    inicio: int
    fim: int


def sinais(texto: Texto) -> list[Sinal]:
    small = _miudas()
    words = [word for word in texto.palavras if word.texto not in small]
    found = [Sinal(each.valor, words[each.inicio].inicio, words[each.fim - 1].fim) for each in _arvore().todas(words)]
    real = [each for each in found if not _is_welcomed(texto.plano, each)]
    return [each for each in (*real, *_outros(texto)) if not _DENIED.match(texto.plano, each.fim)]


def contagem(found: Iterable[Sinal]) -> Counter[str]:
    """Count the signals of each kind. Kinds without signals have an entry with 0, because a Counter is slow for missing
    keys.
    """
    count = Counter(dict.fromkeys(_KINDS, 0))
    for each in found:
        count[each.tipo] += 1
    return count


def _is_welcomed(plano: str, each: Sinal) -> bool:
    """Return whether "recém-formado" (newly graduated) describes the wanted doctor, as in "pode ser recém-formado",
    rather than the author.
    """
    is_beginner = each.tipo == "procura" and plano.startswith("recem", each.inicio)
    return is_beginner and _WELCOME.search(plano, max(0, each.inicio - 30), each.inicio) is not None


def _outros(texto: Texto) -> Iterator[Sinal]:
    """Yield signals that depend on the words around them. For example, "disponível" and "procura" occur in requests and
    in offers.
    """
    plano = texto.plano
    for each in achados(_AVAILABLE, plano, "dispo"):
        before = plano[_frase(plano, each.start()) : each.start()]
        if _PERSON.search(before) and not _WANTED.search(before):
            yield Sinal("procura", each.start(), each.end())
    for each in achados(_SEEKS, plano, "procur", "busc", "atras"):
        after = _PERSON_WANTED.search(plano, each.end(), each.end() + 45)
        by_person = each["eu"] or _PERSON.search(plano, _frase(plano, each.start()), each.start())
        covers = each["eu"] and plano.startswith(" cobertura", each.end())
        if after is None and by_person and not covers:
            yield Sinal("procura", each.start(), each.end())
        elif after is not None and each["eu"] and _DOCTOR_WANTED.match(after[0]):
            yield Sinal("oferta", each.start(), each.end())
    if "http" in plano or "www." in plano:
        for pattern in (_THREAT, _FETCH):
            for each in pattern.finditer(plano):
                yield Sinal("golpe", each.start(), each.end())
    for kind, pattern, needs in _PATTERNS:
        for part in needs:  # the same as ``contem``; a call for each pattern would take longer than the search
            if part in plano:
                for each in pattern.finditer(plano):
                    yield Sinal(kind, each.start(), each.end())
                break


def _frase(plano: str, at: int) -> int:
    """Return the position where the sentence around ``at`` starts, but at most 70 characters before ``at``."""
    start = max(plano.rfind("\n", 0, at) + 1, at - 70, 0)
    ends = [each.end() for each in _SENTENCE_END.finditer(plano, start, at)]
    return ends[-1] if ends else start


def pedidos(texto: Texto, found: list[Sinal]) -> tuple[Marca, ...]:
    """Return the sentences in which the author asks for a shift. No vacancy is read from these sentences."""
    stops = [0, *(each.end() for each in _SENTENCE.finditer(texto.plano)), len(texto.plano)]
    asked: dict[int, int] = {}
    ends: dict[int, int] = {}
    for each in sorted((each for each in found if each.tipo == "procura"), key=lambda each: -each.inicio):
        place = bisect_right(stops, each.inicio)
        asked[place], ends[place] = each.inicio, max(each.fim, ends.get(place, 0))
    given = {bisect_right(stops, each.inicio): each.inicio for each in found if each.tipo in ("oferta", "cede")}
    return tuple(
        # If the same sentence first offers a shift, the request begins after the offer: "passo meu SN de sábado e
        # procuro um diurno".
        Marca(first if given.get(place, first) < first else stops[place - 1], max(stops[place], ends.get(place, 0)))
        for place, first in sorted(asked.items())
        if place < len(stops)
    )


@cache
def _miudas() -> frozenset[str]:
    return frozenset(palavras()["intencao"]["miudas"])


@cache
def _arvore() -> Frases[str]:
    """Return all word lists as one tree of phrases, without small words such as "de". If phrases from several lists
    match, the longest one wins.
    """
    tree = Frases[str]()
    small = _miudas()
    for kind in _KINDS:
        for frase in palavras()["intencao"][kind]:
            words = [word for word in chave(frase).split() if word not in small]
            tree.juntar(" ".join(words), kind)
    listed = palavras()["intencao"]
    for kind in ("procura", "oferta"):
        for verbo, objeto in product(listed[f"{kind}_verbos"], listed[f"{kind}_objetos"]):
            words = [word for word in chave(verbo).split() if word not in small]
            tree.juntar(" ".join((*words, objeto)), kind)
    return tree
