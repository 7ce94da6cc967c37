"""The known names of hospitals and specialities, cached in memory and reloaded when their version in the database
changes.
"""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any, Final, TypeAlias

from app.contexts.comum.ids import id_de
from app.contexts.leitura_grupos.api import Vocabulario, chave
from app.contexts.nomes.canonicos import examinados
from app.contexts.nomes.correcoes import especialidade_de, nome_de_lugar
from app.contexts.nomes.nomes import Achado, Conhecido, Nomes, achar, busca, onde
from batuta.kernel import Clock, dataclass
from batuta.queues import Writes
from batuta.sql import Database, Query, Row, Transaction, load_queries

# Seconds between two version checks. All processes know a new name after this time.
LOOK_EVERY: Final = 5.0
REMEMBERED: Final = 20_000
MAQUINA, GESTOR, SEED = "sistema_auto", "gestor", "seed"
BATCH: Final = 500

# Name, town, state and aliases of a hospital, and the regions of each alias that an operator added for some regions
# only.
Lugar: TypeAlias = tuple[str, str | None, str | None, tuple[str, ...], tuple[tuple[str, frozenset[str]], ...]]
Area: TypeAlias = tuple[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class NameQueries:
    version: Query
    hospitals: Query
    regions: Query
    specialities: Query
    bump: Query
    add_hospital: Query
    add_hospital_alias: Query
    holds_in: Query
    unlearn_hospital_alias: Query
    use_hospital_alias: Query
    review_hospital: Query
    add_speciality: Query
    add_speciality_alias: Query


class Dicionario:
    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self.queries = load_queries(NameQueries, "sql/nomes.sql", database.dialect)
        self._nomes: Nomes | None = None
        self._found: dict[tuple[str | None, ...], Achado] = {}
        self._looks_at = 0.0
        self._looking = asyncio.Lock()

    async def nomes(self) -> Nomes:
        if self._nomes is not None and self._clock.monotonic() < self._looks_at:
            return self._nomes
        async with self._looking:
            if self._nomes is None or self._clock.monotonic() >= self._looks_at:
                row = await self._database.one(self.queries.version)
                version = 0 if row is None else int(row["versao"])
                if self._nomes is None or self._nomes.versao != version:
                    self._nomes, self._found = await self._read(version), {}
                self._looks_at = self._clock.monotonic() + LOOK_EVERY
        return self._nomes

    async def achar(self, nome: str, cidade: str | None, uf: str | None, regiao: str | None) -> Achado:
        nomes = await self.nomes()
        asked = (nome, cidade, uf, regiao)
        if (found := self._found.get(asked)) is None:
            if len(self._found) >= REMEMBERED:
                self._found.clear()
            found = self._found[asked] = achar(nome, cidade, uf, regiao, nomes)
        return found

    def esquecer(self) -> None:
        """Make the next call check whether the cached names are still current. Call this method after this process has
        written names.
        """
        self._looks_at = 0.0

    def novo_hospital(
        self, nome: str, cidade: str | None, uf: str | None, score: float, now: datetime
    ) -> tuple[str, Writes]:
        """Return the id of a new hospital and the statements that store it.

        The id is derived from name and city, so two processes that create the same hospital at the same time create
        only one row.
        """
        id = id_de("hospital", busca(nome), chave(cidade or ""))
        estado = uf if uf is not None and len(uf) == 2 else None
        made = {"id": id, "nome": nome.strip(), "cidade": cidade, "uf": estado, "automatico": True, "now": now}
        return id, Writes(((self.queries.add_hospital, made),)) + self.aprende(
            id, nome, score, now
        ) + self._version_bump()

    def aprende(
        self, hospital_id: str, nome: str, confianca: float, now: datetime, *, por: str | None = None
    ) -> Writes:
        """Return the statement that stores an alias of a hospital. ``por`` is the operator who confirmed the alias, or
        None if the pipeline inferred it.
        """
        learnt = {
            "id": hospital_id, "alias": nome.strip(), "forma": busca(nome), "origem": MAQUINA if por is None else GESTOR,
            "por": por, "confianca": confianca, "confirmado": por is not None, "now": now,
        }  # fmt: skip
        return Writes(((self.queries.add_hospital_alias, learnt),))

    def semelhante(self, hospital_id: str, nome: str, score: float, now: datetime) -> Writes:
        """Return the statement that stores a similar name as an alias of a hospital, with its score. Later searches
        then find the hospital under this name directly.
        """
        return self.aprende(hospital_id, nome, score, now) + self._version_bump()

    def usado(self, hospital_id: str, nome: str) -> Writes:
        return Writes(((self.queries.use_hospital_alias, {"id": hospital_id, "forma": busca(nome)}),))

    def nova_especialidade(self, nome: str, now: datetime) -> tuple[str, Writes]:
        """Return a speciality's id and the statements that store the speciality. A speciality of the vocabulary has no
        row until a message names it for the first time.
        """
        id = id_de("especialidade", chave(nome))
        alias = {
            "id": id,
            "alias": nome,
            "forma": chave(nome),
            "origem": SEED,
            "por": None,
            "confirmado": True,
            "now": now,
        }
        return id, Writes(
            (
                (self.queries.add_speciality, {"id": id, "nome": nome, "now": now}),
                (self.queries.add_speciality_alias, alias),
            )
        ) + self._version_bump()

    async def ensinar_hospital(
        self, transaction: Transaction, hospital_id: str, nome: str, *, por: str, regiao: str | None, now: datetime
    ) -> None:
        """Assign a name to a hospital in a region on behalf of an operator. Delete the aliases that the pipeline
        inferred from the same name.
        """
        await transaction.run(self.queries.unlearn_hospital_alias, id=hospital_id, forma=busca(nome))
        for query, values in self.aprende(hospital_id, nome, 1.0, now, por=por).statements:
            await transaction.run(query, **values)
        if regiao:
            await transaction.run(self.queries.holds_in, id=hospital_id, forma=busca(nome), regiao=regiao)
        await transaction.run(self.queries.review_hospital, id=hospital_id, por=por, now=now)
        await transaction.run(self.queries.bump)

    async def hospital_de_gestor(
        self,
        transaction: Transaction,
        nome: str,
        cidade: str | None,
        uf: str | None,
        regiao: str | None,
        *,
        por: str,
        now: datetime,
    ) -> str:
        """Return the id of the hospital that an operator names. An unknown hospital is created. If the operator gives
        no town, the hospital is assumed to be in the town of the group's region.
        """
        known = await self.nomes_em(transaction)
        found = achar(nome, cidade, uf, regiao, known)
        if found.id is not None and found.como == "alias":
            return found.id
        nome_de_lugar(nome, known)
        town, state = onde(cidade, uf, regiao)
        id = id_de("hospital", busca(nome), chave(town or ""))
        values = {"id": id, "nome": nome.strip(), "cidade": town, "uf": state, "automatico": False, "now": now}
        await transaction.run(self.queries.add_hospital, **values)
        await self.ensinar_hospital(transaction, id, nome, por=por, regiao=regiao, now=now)
        return id

    async def especialidade_de_gestor(self, transaction: Transaction, nome: str, *, now: datetime) -> str:
        """Return the id of the speciality that an operator names. Raises EspecialidadeDesconhecida if the vocabulary
        does not have it.

        If the vocabulary has the speciality but the database does not, its row is created.
        """
        names = await self.nomes_em(transaction)
        canonical = especialidade_de(nome, names)
        if (known := names.especialidades.get(chave(canonical))) is not None:
            return known
        id, made = self.nova_especialidade(canonical, now)
        for query, values in made.statements:
            await transaction.run(query, **values)
        return id

    async def carregar(self, canonicos: Mapping[str, Any], *, now: datetime) -> dict[str, int]:
        """Store a customer's names from the parsed content of ``canonicos.json``. Raises NomesErrados if the format is
        wrong.
        """
        examinados(canonicos)
        hospitals, specialities = list(canonicos.get("hospitais", ())), list(canonicos.get("especialidades", ()))
        statements = [*_hospital_rows(self.queries, hospitals, now), *_speciality_rows(self.queries, specialities, now)]
        for first in range(0, len(statements), BATCH):
            async with self._database.transaction() as transaction:
                for query, values in statements[first : first + BATCH]:
                    await transaction.run(query, **values)
                await transaction.run(self.queries.bump)
        self.esquecer()
        return {"hospitais": len(hospitals), "especialidades": len(specialities)}

    def _version_bump(self) -> Writes:
        return Writes(((self.queries.bump, {}),))

    async def _read(self, version: int) -> Nomes:
        ask = self._database.all
        return _nomes(
            version,
            await ask(self.queries.hospitals),
            await ask(self.queries.regions),
            await ask(self.queries.specialities),
        )

    async def nomes_em(self, transaction: Transaction) -> Nomes:
        """Read the known names inside a transaction. The cache is not used, because an operator's decision needs the
        current names.
        """
        ask = transaction.all
        return _nomes(
            0, await ask(self.queries.hospitals), await ask(self.queries.regions), await ask(self.queries.specialities)
        )


def _nomes(version: int, hospitals: Sequence[Row], regions: Sequence[Row], specialities: Sequence[Row]) -> Nomes:
    by_form: dict[str, list[Conhecido]] = {}
    taught = _ensinados(hospitals, regions)
    for row in hospitals:
        is_sure = row["confirmado"] or row["origem"] != MAQUINA
        known = Conhecido(
            row["id"], row["nome"], row["cidade"], row["estado"], 1.0 if is_sure else float(row["confianca"]),
            taught.get((row["id"], row["alias_normalizado"])),
        )  # fmt: skip
        by_form.setdefault(row["alias_normalizado"], []).append(known)
    return Nomes(
        versao=version,
        vocabulario=_vocabulario(*_canonicos(hospitals, taught, specialities)),
        hospitais=by_form,
        especialidades={row["alias_normalizado"]: row["id"] for row in specialities},
    )


def _ensinados(hospitals: Sequence[Row], regions: Sequence[Row]) -> dict[tuple[str, str], frozenset[str]]:
    """Map each name that operators added for a hospital to the regions for which they added it. The hospital's own town
    is not included.
    """
    taught: dict[tuple[str, str], set[str]] = {
        (row["id"], row["alias_normalizado"]): set() for row in hospitals if row["origem"] == GESTOR
    }
    for row in regions:
        taught.get((row["hospital_id"], row["alias_normalizado"]), set()).add(chave(row["regiao"]))
    return {name: frozenset(there) for name, there in taught.items()}


def _canonicos(
    hospitals: Sequence[Row], taught: Mapping[tuple[str, str], frozenset[str]], specialities: Sequence[Row]
) -> tuple[tuple[Lugar, ...], tuple[Area, ...]]:
    """Return the names that are used to read messages. Names that the pipeline inferred are excluded, because they
    would confirm themselves.
    """
    places: dict[str, list[Row]] = {}
    for row in hospitals:
        if not row["precisa_revisao"] and (row["confirmado"] or row["origem"] != MAQUINA):
            places.setdefault(row["id"], []).append(row)
    areas: dict[str, list[Row]] = {}
    for row in specialities:
        areas.setdefault(row["id"], []).append(row)

    def only_in(rows: Sequence[Row]) -> Iterable[tuple[str, frozenset[str]]]:
        for row in rows:
            if (there := taught.get((row["id"], row["alias_normalizado"]))) is not None:
                yield chave(row["alias"]), there

    return (
        tuple(
            (row["nome"], row["cidade"], row["estado"], tuple(each["alias"] for each in rows), tuple(only_in(rows)))
            for rows in places.values()
            for row in rows[:1]
        ),
        tuple((rows[0]["nome"], tuple(each["alias"] for each in rows)) for rows in areas.values()),
    )


@lru_cache(maxsize=2)
def _vocabulario(lugares: tuple[Lugar, ...], areas: tuple[Area, ...]) -> Vocabulario:
    """Build the vocabulary from hospitals and specialities, or return the cached vocabulary if the names have not
    changed. Building takes 0.1 ms per hospital, and each of an operator's decisions reads the names again.
    """
    return Vocabulario.de(
        {
            "hospitais": [
                {"canonico": name, "cidade": town, "uf": state, "aliases": aliases, "so_em": dict(only_in)}
                for name, town, state, aliases, only_in in lugares
            ],
            "especialidades": [{"canonico": name, "aliases": aliases} for name, aliases in areas],
        }
    )


def _hospital_rows(
    queries: NameQueries, listed: Iterable[Mapping[str, Any]], now: datetime
) -> Iterable[tuple[Query, dict[str, object]]]:
    for each in listed:
        id = id_de("hospital", busca(each["canonico"]), chave(each.get("cidade") or ""))
        place = {"id": id, "nome": each["canonico"], "cidade": each.get("cidade"), "uf": each.get("uf")}
        yield queries.add_hospital, {**place, "automatico": False, "now": now}
        for forma, alias in {busca(name): name for name in (each["canonico"], *each.get("aliases", ()))}.items():
            name = {"id": id, "alias": alias, "forma": forma, "origem": SEED, "por": None, "confianca": 1.0}
            yield queries.add_hospital_alias, {**name, "confirmado": True, "now": now}


def _speciality_rows(
    queries: NameQueries, listed: Iterable[Mapping[str, Any]], now: datetime
) -> Iterable[tuple[Query, dict[str, object]]]:
    for each in listed:
        id = id_de("especialidade", chave(each["canonico"]))
        yield queries.add_speciality, {"id": id, "nome": each["canonico"], "now": now}
        for forma, alias in {chave(name): name for name in (each["canonico"], *each.get("aliases", ()))}.items():
            name = {"id": id, "alias": alias, "forma": forma, "origem": SEED, "por": None}
            yield queries.add_speciality_alias, {**name, "confirmado": True, "now": now}
