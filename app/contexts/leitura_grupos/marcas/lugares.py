"""Find hospitals. The customer's hospitals are found by name or alias, other hospitals by the shape of their names. The
town distinguishes hospitals that have the same name.
"""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from unicodedata import normalize

from app.contexts.leitura_grupos.marcas.marca import TOMADO, Lugar, Marca, apagar, linha_de
from app.contexts.leitura_grupos.texto.texto import Palavra, Texto, chave, contem
from app.contexts.leitura_grupos.texto.vocabulario import (
    Hospital,
    Vocabulario,
    frases,
    municipios,
    palavras,
    palavras_soltas,
    vale_em,
)
from batuta.kernel import dataclass

UFS = frozenset(each.lower() for each in re.findall("..", "ACALAMAPBACEDFESGOMAMGMSMTPAPBPEPIPRRJRNRORRRSSCSESPTO"))
_UF_AFTER = re.compile(r" ?[/,(-]{1,2} ?(?P<uf>[a-z]{2})\b\)?")
# Matches the rest of a longer name: "Oeste" in "UPA Centro-Oeste", "Sul" in "UPA Vila Sul".
_LONGER = re.compile(r"-(?!feira)[a-z]{3}| (?:norte|sul|leste|oeste|nov[ao]|velh[ao]|i{2,3})\b(?! [=:])")
_INITIALS = re.compile(r"\b[A-ZÀ-Ý]{1,3}\b")  # SN, R$, MG
_PERSON = re.compile(r"\bDra?\.? [A-ZÀ-Ý]\w+")
_ACRONYM = re.compile(r"h(?<!\wh)[a-z]{2,5}\b")
_LABEL = re.compile(
    r"^[\W_]{0,8}(?:(?:local|unidade|hospital|instituicao|onde|lugar|empresa|servico) {0,2}[*_]{0,2} ?:[ *_]{0,3}"
    r"|[🏥🏨🏢📍📌🚑][ *_]{0,3})",
    re.MULTILINE,
)
_CITY_LINK = re.compile(r"[ *_]{0,2}(?:[-,(/|](?: em\b)?|\bem\b|\bde\b|\bda\b|\bdo\b)?[ *_]{0,2}(?:cidade (?:de|:) )?")
_COMPANIES = frozenset(("remocoes", "ambulancias", "resgate", "resgates", "remocao"))
# A text that contains none of these parts of words names no company and is not searched.
_COMPANY_WORDS = ("remoc", "ambulancias", "resgate", "servicos", "emergencias", "uti movel")
# Last words of names of companies.
_SERVICES = frozenset(
    (("servicos", "medicos"), ("emergencias", "medicas"), ("servicos", "hospitalares"), ("uti", "movel"))
)
_LABEL_END = re.compile(r" [-|] |[(|,;:\x01\x02💰]|\. | / ")
_MAX_WORDS = 9
_PROPER = r"[A-ZÀ-Ý][\wÀ-ÿ'.]+(?:[ -](?:d[aeo]s?|e|[A-ZÀ-Ý0-9][\wÀ-ÿ'.]*)){0,5}"
_BEFORE_TOWN = re.compile(
    rf"(?:^|[.!:] )[^\w\n]{{0,6}}(?P<nome>{_PROPER})[*_ ]{{0,3}}(?:\([^)\n]{{0,30}}\)[*_ ]{{0,3}})?[-–—,|/(]",
    re.MULTILINE,
)
# Matches a name at the start of a message, before its speciality or its days: "Vida Norte – cardio, qui 04/06".
_AT_START = re.compile(
    r"\A[*_ ]{0,3}(?P<nome>[A-ZÀ-Ý][\wÀ-ÿ']{2,}(?: (?:d[aeo]s? )?[A-ZÀ-Ý][\wÀ-ÿ']{2,}){1,3})[*_ ]{0,3}(?:[-–—,:(/]|\n)"
)
_AFTER_IN = re.compile(r"\b(?:n[oa]|empresa) (?P<nome>[A-ZÀ-Ý][\wÀ-ÿ']+(?: (?:d[aeo]s?|[A-ZÀ-Ý][\wÀ-ÿ']*)){1,4})")


@dataclass(slots=True, unsafe_hash=True)
class Cidade(Marca):
    nome: str
    uf: str


def cidades(texto: Texto, vocabulario: Vocabulario) -> list[Cidade]:
    words = texto.palavras
    return [
        Cidade(words[each.inicio].inicio, words[each.fim - 1].fim, *each.valor)
        for each in vocabulario.cidades.todas(words)
    ]


def conhecidos(
    texto: Texto, livre: str, vocabulario: Vocabulario, regiao: str | None, towns: Sequence[Cidade]
) -> list[Lugar]:
    """Return the known hospitals in the text. If several hospitals share an alias, the town in the text decides which
    one is meant, or else the group's region.
    """
    words = [word for word in texto.palavras if livre[word.inicio : word.fim] == word.texto]
    found: list[Lugar] = []
    reader = _Nomes(texto, livre, vocabulario)
    for each in vocabulario.hospitais.todas(words):
        start, end = words[each.inicio].inicio, words[each.fim - 1].fim
        if "\n" in livre[start:end] or not _is_name(texto, words, each.inicio, each.fim):
            continue
        chosen = _escolhido(reader.dali(each.valor, start, end, regiao), towns, start, regiao)
        if chosen is not None:
            found.append(Lugar(start, end, chosen.nome, chosen.cidade, chosen.uf, None, 1.0))
    return found


def _is_name(texto: Texto, words: Sequence[Palavra], start: int, end: int) -> bool:
    """Return whether an alias refers to the hospital, rather than to a town ("Araucária"), a street or a district."""
    before = words[start - 1].texto if start else ""
    first, last = words[start].inicio, words[end - 1].fim
    if before in ("rua", "av", "avenida", "bairro", "jardim", "cidade") and end - start <= 2:
        return False
    if _is_inside_a_name(texto, words, start) or _LONGER.match(texto.plano, last):
        return False
    uf = _UF_AFTER.match(texto.plano, last)
    is_state = uf is not None and uf["uf"] in UFS
    return not (end - start == 1 and is_state and texto.plano[max(0, first - 1) : first] == "(")


def _is_inside_a_name(texto: Texto, words: Sequence[Palavra], start: int) -> bool:
    """Return whether the words before an alias make it part of a name, as "Araucária" in "PS Parque Araucária"."""
    heads = frases("lugares.cabecas")
    generic, ends, _ = listas()
    if heads.em(words, start) is not None:
        return False
    for first in range(start - 1, max(-1, start - 5), -1):
        if texto.plano[words[first].fim : words[first + 1].inicio] != " ":
            return False
        head = heads.em(words, first)
        if head is not None and head.fim <= start:
            own = [
                word.texto for word in words[head.fim : start] if word.texto not in generic and word.texto not in LINKS
            ]
            return bool(own)
        if words[first].texto in ends and words[first].texto not in generic:
            return False
    return False


def _escolhido(candidates: Sequence[Hospital], towns: Iterable[Cidade], at: int, regiao: str | None) -> Hospital | None:
    if len(candidates) == 1:
        return candidates[0]
    homes = {chave(each.cidade): each for each in reversed(candidates) if each.cidade is not None}
    fitting = [town for town in towns if chave(town.nome) in homes]
    if fitting:
        return homes[chave(min(fitting, key=lambda each: abs(each.inicio - at)).nome)]
    city, _, uf = (regiao or "").rpartition("/")
    for each in candidates:
        if each.cidade is not None and chave(each.cidade) == chave(city):
            return each
    state = [each for each in candidates if each.uf is not None and each.uf == uf.strip().upper()]
    return state[0] if len(state) == 1 else None


def novos(
    texto: Texto, livre: str, vocabulario: Vocabulario, known: Sequence[Lugar], regiao: str | None
) -> list[Lugar]:
    """Return the hospitals that are missing from the vocabulary. Their names are found by their form: "Hospital …",
    "UPA …", text after "Local:", acronyms such as HMXY.
    """
    reader = _Nomes(texto, livre, vocabulario, (regiao or "").rpartition("/")[2].strip().upper())
    found = list(reader.todos())
    rest = apagar(livre, found)
    named = (*known, *found)
    labelled = (
        reader.rotulado(label.end(), rest)
        for label in _LABEL.finditer(rest)
        if not any(label.end() <= each.inicio < linha_de(rest, label.end())[1] for each in named)
    )
    found.extend(place for place in labelled if place is not None and TOMADO not in rest[place.inicio : place.fim])
    found.extend(reader.remocoes(apagar(rest, found)))
    rest = apagar(rest, found)
    for each in _ACRONYM.finditer(rest):
        first, last = texto.trecho(each.start(), each.end())
        if texto.fonte[first:last].isupper() and not reader.gritado and each[0] not in reader.comuns:
            found.append(reader.com_cidade(Lugar(each.start(), each.end(), texto.fonte[first:last], confianca=0.6)))
    if not known and not found:
        found.extend(reader.sem_cabeca(rest))
    return sorted(found, key=lambda each: each.inicio)


def estado_dito(texto: Texto, livre: str, end: int) -> str | None:
    """Return the state that is written directly after a town: "/sp", "- SP", or "SP" in capitals."""
    uf = _UF_AFTER.match(livre, end)
    if uf is not None and uf["uf"] in UFS:
        return uf["uf"].upper()
    word = livre[end + 1 : end + 3]
    if livre[end : end + 1] != " " or word not in UFS or livre[end + 3 : end + 4].isalnum():
        return None
    first, last = texto.trecho(end + 1, end + 3)
    return word.upper() if texto.fonte[first:last].isupper() else None


class _Nomes:
    """Finds the names of places in a message. ``estado`` is the group's state. A town without a state is looked up in
    the group's state.
    """

    def __init__(self, texto: Texto, livre: str, vocabulario: Vocabulario, estado: str = "") -> None:
        self._texto, self._livre, self._vocabulario, self._estado = texto, livre, vocabulario, estado
        self._heads = frases("lugares.cabecas")
        self._generic, self._ends, self.comuns = listas()
        self.gritado = texto.maiusculas > 0.8

    def dali(self, bearers: Sequence[Hospital], start: int, end: int, regiao: str | None) -> Sequence[Hospital]:
        """Return those hospitals in ``bearers`` whose name is valid in the town that the text states next to the name,
        or else in the group's region. A name that an operator added for one town is not valid in another town.
        """
        if all(each.so_em is None for each in bearers):
            return bearers
        said = self.com_cidade(Lugar(start, end, "")).cidade
        return [each for each in bearers if vale_em(each.so_em, each.cidade, each.uf, dita=said, regiao=regiao)]

    def todos(self) -> Iterator[Lugar]:
        """Yield the places whose names begin with a word such as "hospital"."""
        words, free = self._texto.palavras, 0
        for each in self._heads.todas(words):
            if each.inicio < free or not self._is_free(words[each.inicio]) or self._is_unit(words[each.inicio]):
                continue
            if self._is_sector(each.inicio, each.fim):
                continue
            speciality = self._vocabulario.especialidades.em(words, each.inicio)
            if speciality is not None and speciality.fim > each.fim:
                continue
            end = self._fim(each.inicio, each.fim)
            place = self._lugar(list(words[each.inicio : end]))
            if place is not None:
                free = end
                yield place

    def _is_sector(self, head: int, end: int) -> bool:
        """Return whether a word such as "PS" (emergency room) names a department of the hospital after it: "PS (do)
        Hospital Vida".
        """
        words = self._texto.palavras
        if words[head].texto not in _SECTORS or end + 1 >= len(words):
            return False
        name = end if words[end].texto == "hospital" else end + 1
        joined = name == end or words[end].texto in ("do", "da")
        is_name = self._heads.em(words, name) is not None and words[name].texto not in _SECTORS
        return joined and is_name and self._is_free(words[name])

    def _is_unit(self, word: Palavra) -> bool:
        """Return whether an "h" is the unit of an hourly price, as in "145/h. Fulano"."""
        return word.texto == "h" and self._livre[max(0, word.inicio - 1) : word.inicio] == "/"

    def _fim(self, head: int, end: int) -> int:
        words = self._texto.palavras
        cased = self._has_capitals(head, end)
        for place in range(end, min(head + 1 + _MAX_WORDS, len(words))):
            if not self._continues(words[place - 1], words[place], cased):
                break
            if words[place].texto == "e" and words[place + 1 : place + 2] and self._joins_two(head, place, cased):
                break
            end = place + 1
        return end

    def _joins_two(self, head: int, link: int, cased: bool) -> bool:
        """Return whether "e" (and) joins two places: "Hospital Vida e UPA Norte" names two places, "Hospital e
        Maternidade Vida" names one.
        """
        words = self._texto.palavras
        if words[link + 1].texto not in self._generic:
            return not (cased and self._is_second_half(head, link))
        second = self._heads.em(words, link + 1)
        if (
            second is None
            or second.fim >= len(words)
            or not self._continues(words[second.fim - 1], words[second.fim], cased)
        ):
            return False
        return all(
            self._has_own_name(words[start:end], end - start)
            for start, end in ((head, link), (link + 1, second.fim + 1))
        )

    def _is_second_half(self, head: int, link: int) -> bool:
        """Return whether the words after "e" (and) belong to the same name: "Hospital Vida e Luz" is one place, "UPA
        Norte e Sul" are two.
        """
        words = self._texto.palavras
        if words[head].texto not in _WITH_TWO_WORDS or link != head + 2 or not self._is_upper(words[link + 1]):
            return False
        after = self._livre[words[link + 1].fim : words[link + 1].fim + 2]
        return after.strip(" *_")[:1] in ("", "-", ",", ":", "\n", "(", "/", "|") and after[:1] != "/"

    def _has_capitals(self, head: int, end: int) -> bool:
        """Return whether the author capitalises the names of places, judged by the first word of a name."""
        words = self._texto.palavras
        own = next((word for word in words[end : end + 3] if word.texto not in LINKS), None)
        if self.gritado or own is None or (own.texto in _SANTOS and not self._is_upper(own)):
            return False
        if self._is_upper(own):
            return True
        line = self._texto.trecho(*linha_de(self._texto.plano, words[head].inicio, 200))
        written = _INITIALS.sub("", _PERSON.sub("", self._texto.fonte[slice(*line)]))
        return written != written.lower()

    def _is_upper(self, word: Palavra) -> bool:
        return self._texto.fonte[self._texto.trecho(word.inicio, word.fim)[0]].isupper()

    def _continues(self, before: Palavra, word: Palavra, cased: bool) -> bool:
        between = self._livre[before.fim : word.inicio]
        if (
            not re.fullmatch(r" ?[ .'*_-]{1,2}|'", between)
            or " -" in between
            or "- " in between
            or "*" in between.strip("* ")
        ):
            return False
        if between == "-" and self._is_free(word):
            return True
        if before.texto in ("upa", "upas", "pa") and word.texto in ("24h", "24hs"):
            return True
        if before.texto == "samu" and word.texto == "192":
            return True
        is_part = word.texto in _PARTS and (self._is_upper(word) if cased else (before.texto, word.texto) == _OF_DOM)
        if not self._is_free(word) or (word.texto in self._ends and not is_part):
            return False
        if between == ". " and before.texto not in _SHORTENED:
            return False
        if word.texto in LINKS:
            return True
        if word.texto.isdigit():
            return False
        if self._vocabulario.especialidades.em([word], 0) is not None and word.texto not in self._generic:
            return False
        return not cased or self._is_upper(word) or {before.texto, word.texto} <= self._generic

    def _lugar(self, words: list[Palavra]) -> Lugar | None:
        words, state = self._ate_o_estado(words)
        if len(words) > 2 and self._is_short_town(words):
            town = self._vocabulario.cidades.em(words, len(words) - 1)
            assert town is not None
            name, where = self._sem_cidade(words[:-1]), (words[-1].inicio, words[-1].fim)
            return name if name.cidade is not None else replace(name, cidade=town.valor[0], cidade_em=where)
        while words and words[-1].texto in LINKS:
            words.pop()
        named = [word for word in words if word.texto not in LINKS]
        own = [word for word in named if word.texto not in self._generic]
        if len(words) < 2 or not (own or len(named) > 2):
            return None
        return self.com_cidade(self._sem_cidade(words, state))

    def _is_short_town(self, words: Sequence[Palavra]) -> bool:
        """Return whether a name ends with a town's initials: "Hospital Vida SBC"."""
        last, town = words[-1], self._vocabulario.cidades.em(words, len(words) - 1)
        first, end = self._texto.trecho(last.inicio, last.fim)
        is_short = len(last.texto) in (2, 3) and self._texto.fonte[first:end].isupper() and not self.gritado
        return town is not None and is_short and self._has_own_name(words, len(words) - 1)

    def _ate_o_estado(self, words: list[Palavra]) -> tuple[list[Palavra], str | None]:
        """Cut a name after its town if the state follows the town, and return the state: "hospital X de Lages SC está
        sem" gives "hospital X de Lages" and "SC".
        """
        for at in range(2, len(words)):
            state = words[at].texto.upper()
            if words[at].texto in UFS and self._is_upper(words[at]) and _cidade_no_fim(words[:at], state) is not None:
                return words[:at], state
        return words, None

    def _sem_cidade(self, words: list[Palavra], state: str | None = None) -> Lugar:
        """Remove the town from a place's name ("… de Pirapora/MG"). If only generic words such as "Santa Casa" would
        remain, the name stays unchanged.
        """
        start, end = words[0].inicio, words[-1].fim
        uf = _UF_AFTER.match(self._livre, end)
        state = uf["uf"].upper() if uf is not None and uf["uf"] in UFS else state
        cut = self._onde_a_cidade(words, state)
        if cut is None:
            return Lugar(start, end, self._escrito(start, end), confianca=0.8)
        town = words[cut + (words[cut].texto in LINKS) :]
        rest = [word for word in words[:cut] if word.texto not in self._generic and word.texto not in LINKS]
        stop = words[cut - 1].fim if rest else end
        city = self._title(*self._texto.trecho(town[0].inicio, town[-1].fim))
        return Lugar(start, stop, self._escrito(start, stop), city, state, (town[0].inicio, end), 0.8)

    def _onde_a_cidade(self, words: list[Palavra], state: str | None) -> int | None:
        """Return the index of the word at which the town begins in a place's name, or None if the name ends with no
        town. In "Hospital Padre Teste de Pirapora", return the index of "de".

        If the text names no state, the town must be a known municipality that follows other words of the name.
        """
        links = [at for at in range(1, len(words) - 1) if words[at].texto in LINKS and words[at].texto != "e"]
        for at in links:
            where = municipios().get(" ".join(word.texto for word in words[at + 1 :]))
            if where is None or (state is not None and state not in where):
                continue
            named = [word for word in words[1:at] if word.texto not in self._generic and word.texto not in LINKS]
            is_town = words[at].texto == "de" and bool(named) and words[-1].texto not in _EPITHETS
            if state is not None or (is_town and self.com_cidade(Lugar(0, words[-1].fim, "")).cidade is None):
                return at
        town = _cidade_no_fim(words, state or self._estado)
        is_named = town is not None and self._has_own_name(words, town)
        if town is not None and is_named and (state is not None or self._is_only_a_town(words, town)):
            return town
        last = links[-1] if links else None
        if state is None or last is None or last < len(words) - 2 or words[last].texto != "de":
            return None
        return last

    def _has_own_name(self, words: Sequence[Palavra], town: int) -> bool:
        """Return whether the words before a town form a complete name of a place. In "Hospital Vida Lages" the words
        "Hospital Vida" do; in "UPA Vila Lages" the words "UPA Vila" do not.
        """
        own = [word for word in words[1:town] if word.texto not in self._generic and word.texto not in LINKS]
        is_open = words[town - 1].texto in _OPEN and not (len(own) > 1 and words[town - 1].texto in ("novo", "nova"))
        return bool(own) and not is_open and words[-1].texto not in _EPITHETS

    def _is_only_a_town(self, words: Sequence[Palavra], town: int) -> bool:
        """Return whether the last words of a place's name are the name of its town, rather than a part of its own name."""
        name = " ".join(word.texto for word in words[town:])
        own = {word.texto for word in words[1:town]} - self._generic - LINKS - palavras_soltas("descrevem_hospital")
        is_common = len(name) < 7 or name in palavras_soltas("cidades_em_nomes")
        return bool(own) and not is_common and self.com_cidade(Lugar(0, words[-1].fim, "")).cidade is None

    def remocoes(self, rest: str) -> Iterator[Lugar]:
        """Yield patient transport companies such as "Vida Teste Remoções"."""
        if not contem(self._texto.plano, _COMPANY_WORDS):
            return
        words = self._texto.palavras
        for place, word in enumerate(words):
            if not self._is_company(place) or rest[word.inicio : word.fim] != word.texto or not self._is_upper(word):
                continue
            first = place
            while first and place - first < 3 and self._is_before(words[first - 1], words[first], rest):
                first -= 1
            while first < place and not self._is_upper(words[first]):
                first += 1
            own = [each for each in words[first:place] if each.texto not in self._ends or each.texto == "em"]
            own = [each for each in own if each.texto != "empresa"]
            if own:
                yield Lugar(own[0].inicio, word.fim, self._escrito(own[0].inicio, word.fim), confianca=0.7)
            elif (
                word.texto in _COMPANIES
                and word.texto.endswith("s")
                and not self.gritado
                and (behind := self._atras(place, rest))
            ):
                yield Lugar(word.inicio, behind[-1].fim, self._escrito(word.inicio, behind[-1].fim), confianca=0.7)

    def _is_company(self, place: int) -> bool:
        words = self._texto.palavras
        if words[place].texto in _COMPANIES:
            return True
        return place > 0 and (words[place - 1].texto, words[place].texto) in _SERVICES

    def _atras(self, place: int, rest: str) -> Sequence[Palavra]:
        """Return a transport company's name that follows the word "Remoções" (transfers): "Remoções Vida Teste"."""
        words, last = self._texto.palavras, place
        while last + 1 < len(words) and last - place < 3 and self._follows(words[last], words[last + 1], rest):
            last += 1
        return words[place + 1 : last + 1]

    def _follows(self, word: Palavra, after: Palavra, rest: str) -> bool:
        is_plain = rest[word.inicio : after.fim] == f"{word.texto} {after.texto}"
        return is_plain and self._is_upper(after) and after.texto not in self._ends

    def _is_before(self, word: Palavra, after: Palavra, rest: str) -> bool:
        is_link = word.texto in LINKS or word.texto == "em"
        return rest[word.inicio : after.inicio] == f"{word.texto} " and (self._is_upper(word) or is_link)

    def sem_cabeca(self, rest: str) -> Iterator[Lugar]:
        """Yield place names that contain no word such as "hospital". They are found before a town ("Nefroclínica
        Cerrado - Anápolis/GO"), after "no" ("quem assume no Santa Otília de Blumenau?"), or at the start of the
        message. Call this method only if the message names no other place.
        """
        seen: set[int] = set()
        for pattern in (_BEFORE_TOWN, _AFTER_IN, _AT_START):
            for each in islice(pattern.finditer(self._texto.fonte), 8):
                words = [word for word in self._palavras_da_fonte(*each.span("nome")) if self._is_free(word)]
                while words and (words[-1].texto in LINKS or words[-1].texto in self._ends):
                    words.pop()
                if not words or words[0].inicio in seen or not self._is_proper(words):
                    continue
                place = self.com_cidade(replace(self._sem_cidade(words), confianca=0.5))
                town = self._vocabulario.cidades.em(words, 0)
                proper = [word for word in words if word.texto not in LINKS]
                is_long = pattern is not _BEFORE_TOWN and len(proper) > 1
                if town is None and (is_long or place.cidade is not None):
                    seen.add(words[0].inicio)
                    yield place
            if seen:
                return

    def _palavras_da_fonte(self, start: int, end: int) -> list[Palavra]:
        return [word for word in self._texto.palavras if start <= self._texto.trecho(word.inicio, word.fim)[0] < end]

    def _is_proper(self, words: Sequence[Palavra]) -> bool:
        """Return whether words may be the name of a place. Specialities, words typical of offers and common words may
        not.
        """
        common = palavras_soltas("nao_sao_nomes")
        said = [word.texto for word in words if word.texto not in LINKS]
        is_common = said[:1] != ["santa"] or said[1:2] in ([], ["casa"])
        if not said or any(word in self._ends for word in said) or (is_common and said[0] in common) or said[0] in UFS:
            return False
        return self._vocabulario.especialidades.em(words, 0) is None

    def rotulado(self, at: int, rest: str) -> Lugar | None:
        """Return the place after a label such as "Local:", up to the first separator."""
        end = rest.find("\n", at)
        end = len(rest) if end < 0 else end
        stop = _LABEL_END.search(rest, at, end)
        end = stop.start() if stop is not None else end
        words = list(self._texto.palavras_entre(at, end))
        cut = next((place for place, word in enumerate(words) if word.texto in self._ends), len(words))
        words = words[:cut]
        if not words or len(words) > _MAX_WORDS or not any(char.isalpha() for char in words[0].texto):
            return None
        text = " ".join(word.texto for word in words)
        if self._vocabulario.cidades.em(words, 0) is not None or words[0].texto in UFS:
            return None
        if self._vocabulario.especialidades.valor(text) is not None:
            return None
        if all(word.texto in self._generic or word.texto in LINKS or word.texto in self.comuns for word in words):
            return None
        return self.com_cidade(replace(self._sem_cidade(words), confianca=0.7))

    def com_cidade(self, place: Lugar) -> Lugar:
        """Assign to a place the town that is written directly after its name: "- Ponta Grossa/PR", "(Sinop-MT)", "em
        Lages".
        """
        if place.cidade is not None:
            return place
        link = _CITY_LINK.match(self._livre, place.fim)
        at = place.fim if link is None else link.end()
        words = self._texto.palavras_entre(at, at + 60)
        if not words or words[0].inicio != at:
            return place
        known = self._vocabulario.cidades.em(words, 0)
        if known is not None:
            end = words[known.fim - 1].fim
            return replace(place, cidade=known.valor[0], uf=self._estado_dito(end), cidade_em=(at, end))
        return self._cidade_desconhecida(place, at, words)

    def _estado_dito(self, end: int) -> str | None:
        return estado_dito(self._texto, self._livre, end)

    def _cidade_desconhecida(self, place: Lugar, at: int, words: Sequence[Palavra]) -> Lugar:
        """Assign to a place a town that is missing from the vocabulary, if the town's state follows or the town is a
        known municipality.
        """
        found = place
        for count in range(1, min(5, len(words)) + 1):
            end = words[count - 1].fim
            if "\n" in self._livre[at:end]:
                break
            uf = _UF_AFTER.match(self._livre, end)
            if uf is not None and uf["uf"] in UFS:
                return replace(
                    place, cidade=self._title(*self._texto.trecho(at, end)), uf=uf["uf"].upper(), cidade_em=(at, end)
                )
            states = municipios().get(" ".join(word.texto for word in words[:count]), frozenset())
            if states and self._livre[place.fim : at].strip(" *_") and self._is_upper(words[0]):
                found = replace(place, cidade=self._title(*self._texto.trecho(at, end)), cidade_em=(at, end))
        return found

    def _escrito(self, start: int, end: int) -> str:
        written = re.sub(r"[*_~\s]+", " ", self._title(*self._texto.trecho(start, end))).strip()
        return written[:1].upper() + written[1:]

    def _title(self, first: int, last: int) -> str:
        written = normalize("NFKC", self._texto.fonte[first:last])
        if not (written.islower() or written.isupper()):
            return written
        words = (word if word.lower() in LINKS else _capital(word) for word in written.lower().split(" "))
        return " ".join(words)

    def _is_free(self, word: Palavra) -> bool:
        return self._livre[word.inicio : word.fim] == word.texto


# Abbreviations inside a name. A full stop after any other word ends the name.
_SHORTENED = frozenset((
    "h", "hosp", "mat", "sta", "sto", "s", "n", "sra", "nsa", "dr", "dra", "pe", "cel", "gov", "pref", "dep",
    "mons", "mun", "reg", "v", "j", "prof", "mal", "gen", "cap", "ten", "d",
))  # fmt: skip
# Words that end a name unless they are capitalised: "UPA Setor Noroeste".
_PARTS, _OF_DOM = frozenset(("por", "setor", "dom")), ("hospital", "dom")
_SANTOS = frozenset(("santa", "santo", "sao", "nossa", "dom", "dona", "padre"))
# Towns that are also parts of the names of saints: "Nossa Senhora de Fátima".
_EPITHETS = frozenset(
    ("fatima", "lourdes", "nazare", "assis", "padua", "paula", "jesus", "deus", "maria", "guadalupe", "belem")
)
LINKS = frozenset(("de", "da", "do", "das", "dos", "e"))
# Words of a name that another word must follow.
_OPEN = LINKS | {
    "vila", "jardim", "parque", "bairro", "alto", "nova", "novo", "nossa", "senhora", "senhor", "santa", "santo", "sao", "dom",
    "dona", "padre", "doutor", "dr",
}  # fmt: skip
# Words that begin a name, but may also name a part of another place.
_SECTORS = frozenset(("ps", "pa", "pronto"))
_WITH_TWO_WORDS = frozenset(("hospital", "clinica", "maternidade", "instituto", "casa"))


def _cidade_no_fim(words: Sequence[Palavra], state: str) -> int | None:
    """Return the index of the first word of the municipality with which ``words`` end, or None. The municipality must
    be in the state.
    """
    for at in range(max(1, len(words) - 5), len(words)):
        if state in municipios().get(" ".join(word.texto for word in words[at:]), ()):
            return at
    return None


@cache
def listas() -> tuple[frozenset[str], frozenset[str], frozenset[str]]:
    lists = palavras()["lugares"]
    return frozenset(lists["genericos"]), frozenset(lists["terminam"]), frozenset(lists["siglas_comuns"])


def _capital(word: str) -> str:
    siglas = ("upa", "ama", "ubs", "usf", "psf", "esf", "samu", "hm", "hr", "hg", "hu", "ps", "pa")
    return word.upper() if word in siglas else word[:1].upper() + word[1:]
