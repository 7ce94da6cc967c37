"""Whose number belongs to which vaga."""

from app.contexts.grupos.leitura.contatos import Contato
from app.contexts.grupos.leitura.folha import Folha
from app.contexts.grupos.leitura.linhas import Bloco
from app.contexts.grupos.leitura.marcas import Lugar
from app.contexts.grupos.leitura.texto import chave
from app.contexts.grupos.leitura.tipos import Campo


class Pessoas:
    def __init__(self, folha: Folha) -> None:
        self._folha = folha
        self._texto = folha.texto
        plano = folha.texto.plano
        self._linhas = [
            plano[plano.rfind("\n", 0, each.inicio) + 1 : _end(plano, each.inicio)] for each in folha.contatos
        ]

    def de(self, where: Lugar, block: Bloco) -> tuple[Campo[str] | None, Campo[str] | None]:
        found = self._contato(where, block)
        if found is None:
            return None, None
        name = None if found.nome is None else Campo(found.nome.texto, self._trecho(found.nome.inicio, found.nome.fim))
        phone = None
        if found.fone is not None and found.fone.numero is not None:
            phone = Campo(found.fone.numero, self._trecho(found.fone.inicio, found.fone.fim))
        return name, phone

    def _contato(self, where: Lugar, block: Bloco) -> Contato | None:
        """Of several: the one on its line, with its hospital or town, in its section; else the first."""
        people = self._folha.contatos
        if len(people) < 2:
            return people[0] if people else None
        for each in people:
            if block.inicio <= each.inicio < block.fim:
                return each
        for each, line in zip(people, self._linhas, strict=True):
            if chave(where.nome) in chave(line) or (where.cidade is not None and chave(where.cidade) in chave(line)):
                return each
        return self._da_secao(where, block) or people[0]

    def _da_secao(self, where: Lugar, block: Bloco) -> Contato | None:
        """Each hospital's part of the message ends with its own number."""
        heads = [each for each in self._folha.lugares if each.nome != where.nome and each.inicio > block.inicio]
        end = heads[0].inicio if heads else len(self._texto.plano)
        inside = [each for each in self._folha.contatos if block.inicio <= each.inicio < end]
        return inside[0] if inside else None

    def _trecho(self, start: int, end: int) -> tuple[int, int]:
        return self._texto.trecho(start, end)


def _end(plano: str, at: int) -> int:
    end = plano.find("\n", at)
    return len(plano) if end < 0 else end
