"""Build SQL statements from the declaration of personal data. For each table, the statements find, erase and count one
person's rows.
"""

from collections.abc import Mapping
from functools import cache

from app.contexts.lgpd.dados_pessoais import TABELAS, Dados, De, Tabela
from app.contexts.lgpd.mencoes import LAST_DIGITS
from app.contexts.lgpd.pessoa import Alvo
from batuta.kernel import dataclass
from batuta.sql import AsJson, Dialect, Query, in_dialect, query_of

_UUIDS = frozenset({De.MEDICO, De.CONTATO, De.CONVERSA, De.MENSAGEM, De.VAGA, De.AGENDAMENTO, De.TAREFA})


@dataclass(frozen=True, slots=True, kw_only=True)
class Comando:
    """The SQL statements for the personal data in one table. ``apagar`` is None if the rows are kept under an anonymous
    id instead of being erased.
    """

    tabela: str
    por_ultimo: bool
    mostrar: Query | None
    apagar: Query | None
    restam: Query | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TextoLivre:
    """Statements for one column of free text. ``achar`` and ``ocupados`` select the texts that contain a phone number's
    last digits: ``achar`` in rows that may be changed now, ``ocupados`` in rows that are in use. ``trocar`` overwrites
    a text in a row that may be changed.
    """

    tabela: str
    coluna: str
    achar: Query
    ocupados: Query
    trocar: Query


@cache
def comandos(dialect: Dialect) -> tuple[Comando, ...]:
    return tuple(_comando(tabela, dados, dialect) for tabela in TABELAS for dados in tabela.dados)


@cache
def textos_livres(dialect: Dialect) -> tuple[TextoLivre, ...]:
    return tuple(_livre(tabela, column, dialect) for tabela in TABELAS for column in tabela.livres.split())


def valores(query: Query, alvo: Alvo, **others: object) -> Mapping[str, object]:
    """Return the values of a statement's parameters for one person."""
    lists = {each.value: AsJson([*getattr(alvo, each.value)]) for each in De if each is not De.TODOS}
    return {name: (lists | others)[name] for name in query.parameters}


def _comando(tabela: Tabela, dados: Dados, dialect: Dialect) -> Comando:
    own = " OR ".join(_condition(column, de, dialect) for column, de in dados.de.items())
    found, is_kept = f"({own}) AND ({dados.se})", dados.apagar is not None and not dados.apagar
    if dados.apagar:
        found_more = " OR ".join(f"{column} IS DISTINCT FROM {value}" for column, value in dados.apagar.items())
        changes = ", ".join(f"{column} = {value}" for column, value in dados.apagar.items())
        erase, open_ = f"UPDATE {tabela.nome} SET {changes}", f"{found} AND ({found_more})"
    else:
        erase, open_ = f"DELETE FROM {tabela.nome}", found
    left = f"{open_} AND ({dados.ocupada})" if De.TODOS in dados.de.values() else open_
    shown = dados.colunas if De.TODOS not in dados.de.values() else []

    def make(text: str, *, writes: bool) -> Query:
        return in_dialect(query_of(f"lgpd_{tabela.nome}", text, writes=writes), dialect)

    return Comando(
        tabela=tabela.nome,
        por_ultimo=dados.por_ultimo,
        mostrar=make(f"SELECT {', '.join(shown)} FROM {tabela.nome} WHERE {found}", writes=False) if shown else None,
        apagar=None if is_kept else make(f"{erase} WHERE {open_} AND NOT ({dados.ocupada})", writes=True),
        restam=None if is_kept else make(f"SELECT count(*) AS items FROM {tabela.nome} WHERE {left}", writes=False),
    )


def _condition(column: str, de: De, dialect: Dialect) -> str:
    if de is De.TODOS:
        return "TRUE"
    if de is De.CONTEM:
        if dialect == "sqlite":
            said, holds = f"json_each(:{de}) AS said", f"instr(CAST({column} AS TEXT), said.value) > 0"
        else:
            said = f"jsonb_array_elements_text(:{de}) AS said (value)"
            holds = f"strpos(CAST({column} AS TEXT), said.value) > 0"
        return f"EXISTS (SELECT 1 FROM {said} WHERE {holds})"
    if dialect == "sqlite":
        return f"{column} IN (SELECT value FROM json_each(:{de}))"
    cast = "::uuid" if de in _UUIDS else ""
    return f"{column} IN (SELECT jsonb_array_elements_text(:{de}){cast})"


def _livre(tabela: Tabela, column: str, dialect: Dialect) -> TextoLivre:
    text, name = f"CAST({column} AS TEXT)", f"lgpd_{tabela.nome}_{column}"
    find = f"SELECT {column}, {text} AS said FROM {tabela.nome} WHERE {text} LIKE :last AND"
    change = f"UPDATE {tabela.nome} SET {column} = :new WHERE {text} = :said AND NOT ({tabela.ocupada})"
    return TextoLivre(
        tabela=tabela.nome,
        coluna=column,
        achar=in_dialect(query_of(name, f"{find} NOT ({tabela.ocupada})", writes=False), dialect),
        ocupados=in_dialect(query_of(name, f"{find} ({tabela.ocupada})", writes=False), dialect),
        trocar=in_dialect(query_of(name, change, writes=True), dialect),
    )


def last_digits(chave: str) -> str:
    return f"%{chave[-LAST_DIGITS:]}%"
