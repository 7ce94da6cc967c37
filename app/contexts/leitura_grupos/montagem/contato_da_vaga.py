"""Find each vacancy's contact among the contacts in a message."""

from bisect import bisect_left

from app.contexts.leitura_grupos.marcas.contatos import Contato
from app.contexts.leitura_grupos.marcas.folha import Folha
from app.contexts.leitura_grupos.marcas.marca import Lugar, entre, linha_de
from app.contexts.leitura_grupos.montagem.linhas import Bloco
from app.contexts.leitura_grupos.texto.texto import chave
from app.contexts.leitura_grupos.tipos import Campo


class Pessoas:
    def __init__(self, folha: Folha) -> None:
        self._folha = folha
        self._texto = folha.texto
        plano = folha.texto.plano
        self._inicios = [each.inicio for each in folha.contatos]
        # A single contact applies to all vacancies, whichever line names it.
        lines = [linha_de(plano, each, 200) for each in self._inicios] if len(self._inicios) > 1 else []
        self._linhas = [chave(plano[slice(*each)]) for each in lines]
        self._lugares = [{place.nome for place in entre(folha.lugares, *each)} for each in lines]
        self._por_lugar: dict[str, Contato | None] = {}

    def de(self, where: Lugar, block: Bloco) -> tuple[Campo[str] | None, Campo[str] | None]:
        return self._campos(self._contato(where, block))

    def primeira(self) -> tuple[Campo[str] | None, Campo[str] | None]:
        return self._campos(next(iter(self._folha.contatos), None))

    def _campos(self, found: Contato | None) -> tuple[Campo[str] | None, Campo[str] | None]:
        if found is None:
            return None, None
        name = None if found.nome is None else Campo(found.nome.texto, self._trecho(found.nome.inicio, found.nome.fim))
        phone = None
        if found.fone is not None and found.fone.numero is not None:
            phone = Campo(found.fone.numero, self._trecho(found.fone.inicio, found.fone.fim))
        return name, phone

    def _contato(self, where: Lugar, block: Bloco) -> Contato | None:
        """Return a vacancy's contact. The search order is: the vacancy's line, a line with the vacancy's hospital or
        town, the section about the hospital. If none of them has a contact, return the first contact in the message.
        """
        people = self._folha.contatos
        if len(people) < 2:
            return people[0] if people else None
        own = bisect_left(self._inicios, block.inicio)
        if own < len(people) and self._inicios[own] < block.fim:
            return people[own]
        if where.nome not in self._por_lugar:
            self._por_lugar[where.nome] = self._com_nome(where)
        return self._por_lugar[where.nome] or self._da_secao(where, own) or people[0]

    def _com_nome(self, where: Lugar) -> Contato | None:
        names = [chave(each) for each in (where.nome, where.cidade) if each]
        fitting = (
            each
            for each, line, places in zip(self._folha.contatos, self._linhas, self._lugares, strict=True)
            if where.nome in places or any(name in line for name in names)
        )
        return next(fitting, None)

    def _da_secao(self, where: Lugar, first: int) -> Contato | None:
        """Return the next contact after a block of the message, if no other hospital is named before the contact. Such
        a contact ends the section about the vacancy's hospital.
        """
        if first == len(self._inicios):
            return None
        between = entre(self._folha.lugares, where.fim, self._inicios[first])
        is_next = all(each.nome == where.nome for each in between[:20])
        return self._folha.contatos[first] if is_next else None

    def _trecho(self, start: int, end: int) -> tuple[int, int]:
        return self._texto.trecho(start, end)
