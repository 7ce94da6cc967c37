"""Find the hospital or speciality to which a name belongs, and remove a wrong name. A wrong name would affect how later
messages are read.
"""

from datetime import datetime

from app.contexts.leitura_grupos.api import chave
from app.contexts.nomes.dicionario import Dicionario
from app.contexts.nomes.nomes import busca
from batuta import BatutaError
from batuta.kernel import Clock, Ids, Json, dataclass
from batuta.sql import AuditLog, Database, Query, Row, Transaction, load_queries


class NomeDesconhecido(BatutaError):
    sentence = "no hospital or speciality has that name: check its spelling with `batuta grupos nomes NAME`"


class NomeDeVarios(BatutaError):
    sentence = "several hospitals or specialities have that name ({ids}): choose one with --id"


@dataclass(frozen=True, slots=True)
class TeachingQueries:
    hospitals: Query
    specialities: Query
    forget_hospital_name: Query
    rename_hospital: Query
    forget_speciality_name: Query


@dataclass(frozen=True, slots=True, kw_only=True)
class Ensinado:
    """A name, and the hospital or speciality that it belongs to. ``tipo`` is hospital or especialidade. ``por`` is the
    operator who added the name, if any.
    """

    tipo: str
    id: str
    nome: str
    alias: str
    origem: str
    confirmado: bool
    por: str | None
    cidade: str | None = None
    uf: str | None = None


class Ensino:
    def __init__(self, database: Database, dicionario: Dicionario, ids: Ids, clock: Clock) -> None:
        self._database = database
        self._dicionario = dicionario
        self._clock = clock
        self._audit = AuditLog(database.dialect, ids)
        self._queries = load_queries(TeachingQueries, "sql/ensino.sql", database.dialect)

    async def de_quem(self, nome: str) -> list[Ensinado]:
        async with self._database.transaction() as transaction:
            return await self._owners(transaction, nome)

    async def esquecer(self, nome: str, *, por: str, id: str | None = None) -> Ensinado:
        """Remove a name from its hospital or speciality. Vacancies from earlier messages stay unchanged."""
        now = self._clock.now()
        async with self._database.transaction() as transaction:
            owners = [each for each in await self._owners(transaction, nome) if id in (None, each.id)]
            if not owners:
                raise NomeDesconhecido
            if len(owners) > 1:
                raise NomeDeVarios(ids=", ".join(each.id for each in owners))
            (owner,) = owners
            await self._forget(transaction, owner, nome)
            await transaction.run(self._dicionario.queries.bump)
            await self._note(transaction, owner, por, now)
        self._dicionario.esquecer()
        return owner

    async def _owners(self, transaction: Transaction, nome: str) -> list[Ensinado]:
        hospitals = await transaction.all(self._queries.hospitals, forma=busca(nome))
        areas = await transaction.all(self._queries.specialities, forma=chave(nome))
        return [
            *(_lesson("hospital", row, cidade=row["cidade"], uf=row["estado"]) for row in hospitals),
            *(_lesson("especialidade", row) for row in areas),
        ]

    async def _forget(self, transaction: Transaction, owner: Ensinado, nome: str) -> None:
        """Delete one name of a hospital or a speciality. If it was a hospital's main name, another of the hospital's
        names becomes the main name.
        """
        if owner.tipo == "especialidade":
            await transaction.run(self._queries.forget_speciality_name, id=owner.id, forma=chave(nome))
            return
        await transaction.run(self._queries.forget_hospital_name, id=owner.id, forma=busca(nome))
        if busca(owner.nome) == busca(nome):
            await transaction.run(self._queries.rename_hospital, id=owner.id)

    async def _note(self, transaction: Transaction, owner: Ensinado, by: str, now: datetime) -> None:
        """Record the removal of a name in the audit log. The entry contains the id of the hospital or speciality
        instead of the name, because a name may be any text, including personal data.
        """
        before: dict[str, Json] = {"origem": owner.origem, "por": owner.por, "confirmado": owner.confirmado}
        await self._audit.note(
            transaction, actor=by, action="nome.esquecer", subject=f"{owner.tipo}:{owner.id}", before=before, after=None, now=now
        )  # fmt: skip


def _lesson(tipo: str, row: Row, *, cidade: str | None = None, uf: str | None = None) -> Ensinado:
    return Ensinado(
        tipo=tipo,
        id=str(row["id"]),
        nome=row["nome"],
        alias=row["alias"],
        origem=row["origem"],
        confirmado=bool(row["confirmado"]),
        por=row["criado_por"],
        cidade=cidade,
        uf=uf,
    )
