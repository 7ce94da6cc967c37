"""Store the sections of operators' documents as directives, in one transaction per document.

If a document's hash is unchanged, nothing changes. An invalid document is recorded but changes no directive. If a new
version of a document omits a section, the section's directive ends. Every version stays stored.
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Final, Protocol, TypeAlias

from app.contexts.comum.saude import report_count
from app.contexts.diretrizes.leitura import Invalido, Lido, prioridade_de
from batuta import BatutaError
from batuta.health import JOBS_AND_WORKERS, Check, Report, Severity
from batuta.kernel import Clock, Ids, dataclass
from batuta.sql import AsJson, Database, Query, Row, Transaction, load_queries

MOST_VERSIONS: Final = 50


class DiretrizDesconhecida(BatutaError):
    sentence = "directive {tipo} does not exist: `batuta diretrizes listar` lists the existing ones"


class FonteIndisponivel(BatutaError):
    sentence = "the documents cannot be read ({why}): correct the source, then `batuta run sincronizar_briefing`"


@dataclass(frozen=True, slots=True)
class Documento:
    """A document that operators wrote. ``texto`` is None if the document is not UTF-8 text."""

    titulo: str
    texto: str | None


class Fonte(Protocol):
    """Source of the documents that operators write, such as a folder. Both methods raise FonteIndisponivel if the
    documents cannot be read.
    """

    @property
    def origem(self) -> str: ...
    async def briefing(self) -> Documento | None:
        """Return the newest briefing, or None if no briefing exists."""
        ...

    async def templates(self) -> Mapping[str, Documento]:
        """Return the newest template of each campaign type. Types without a template are absent."""
        ...


@dataclass(frozen=True, slots=True)
class Aplicado:
    """Result: a new version of a document was applied. ``mudou`` lists the directives that were added, changed or
    ended.
    """

    documento: str
    hash: str
    mudou: Sequence[str]
    avisos: Sequence[str]
    id: str  # id of the version


@dataclass(frozen=True, slots=True)
class Igual:
    """Result: the document is the same as its active version."""

    documento: str
    hash: str


@dataclass(frozen=True, slots=True)
class Rejeitado:
    """Result: the document is invalid, and the active directives are unchanged."""

    documento: str
    hash: str
    motivo: str


Resultado: TypeAlias = Aplicado | Igual | Rejeitado


@dataclass(frozen=True, slots=True)
class DirectiveQueries:
    latest: Query
    record: Query
    active: Query
    active_of: Query
    versions: Query
    last_version: Query
    close: Query
    add: Query
    invalid: Query


class AoAplicar(Protocol):
    async def aplicado(self, transaction: Transaction, aplicado: Aplicado) -> None:
        """React to a new version of a document, in the transaction that applies it."""


class Diretrizes:
    def __init__(self, database: Database, ids: Ids, clock: Clock) -> None:
        self._listeners: list[AoAplicar] = []
        self._database = database
        self._ids = ids
        self._clock = clock
        self._queries = load_queries(DirectiveQueries, "sql/diretrizes.sql", database.dialect)

    def ao_aplicar(self, ouvinte: AoAplicar) -> None:
        """Register a listener for new versions of documents."""
        self._listeners.append(ouvinte)

    async def aplicar(
        self, nome: str, documento: Documento, origem: str, ler: Callable[[str], Lido | Invalido], invalido: Invalido
    ) -> Resultado:
        """Apply one document. ``nome`` identifies the document across its versions. ``invalido`` is the error for a
        document that is not UTF-8 text.
        """
        text = documento.texto or ""
        read = invalido if documento.texto is None else ler(text)
        key = hashlib.sha256(text.encode()).hexdigest()
        async with self._database.transaction() as transaction:
            latest = await transaction.one(self._queries.latest, documento=nome)
            is_same = latest is not None and latest["doc_hash"] == key
            if isinstance(read, Invalido):
                if not is_same:
                    await self._record(transaction, nome, documento, origem, key, read)
                return Rejeitado(nome, key, read.motivo)
            if is_same and latest is not None and latest["resultado"] == "aplicado":
                return Igual(nome, key)
            sync_id = await self._record(transaction, nome, documento, origem, key, read)
            changed = await self._replace(transaction, nome, sync_id, read)
            done = Aplicado(nome, key, changed, read.avisos, sync_id)
            for each in self._listeners:
                await each.aplicado(transaction, done)
        return done

    async def ativas(self) -> Sequence[Row]:
        """Return the active directives, most important first."""
        return await self._database.all(self._queries.active)

    async def versoes(self, tipo: str) -> Sequence[Row]:
        """Return the last 50 versions of a directive, newest first. Raises DiretrizDesconhecida if the directive does
        not exist.
        """
        found = await self._database.all(self._queries.versions, tipo=tipo, limite=MOST_VERSIONS)
        if not found:
            raise DiretrizDesconhecida(tipo=tipo)
        return found

    async def ask(self) -> Report:
        row = await self._database.one(self._queries.invalid)
        assert row is not None
        return report_count(Severity.WARNING, "diretrizes", "invalidas", row["items"], row["desde"], lost=1)

    @property
    def check(self) -> Check:
        return Check(name="diretrizes", section=JOBS_AND_WORKERS, ask=self.ask)

    async def _record(
        self, transaction: Transaction, nome: str, documento: Documento, origem: str, key: str, read: Lido | Invalido
    ) -> str:
        id, is_read = self._ids.new(), isinstance(read, Lido)
        warnings = read.avisos if isinstance(read, Lido) else [read.motivo]
        await transaction.run(
            self._queries.record, id=id, documento=nome, origem=origem, titulo=documento.titulo[:200], hash=key,
            texto=documento.texto or "", parseado=AsJson(dict(read.diretrizes) if isinstance(read, Lido) else {}),
            avisos=AsJson([str(each) for each in warnings]), resultado="aplicado" if is_read else "invalido",
            now=self._clock.now(),
        )  # fmt: skip
        return id

    async def _replace(self, transaction: Transaction, nome: str, sync_id: str, read: Lido) -> list[str]:
        now, before = self._clock.now(), await transaction.all(self._queries.active_of, documento=nome)
        known = {str(row["tipo"]): row["conteudo"] for row in before}
        changed = [tipo for tipo, content in read.diretrizes.items() if known.get(tipo) != content]
        for tipo in (*changed, *(known.keys() - read.diretrizes.keys())):
            await transaction.run(self._queries.close, tipo=tipo, now=now)
        for tipo in changed:
            last = await transaction.one(self._queries.last_version, tipo=tipo)
            assert last is not None
            await transaction.run(
                self._queries.add, id=self._ids.new(), tipo=tipo, versao=last["versao"] + 1,
                conteudo=AsJson(read.diretrizes[tipo]), prioridade=prioridade_de(tipo), sync_id=sync_id, documento=nome,
                now=now,
            )  # fmt: skip
        return sorted({*changed, *(known.keys() - read.diretrizes.keys())})
