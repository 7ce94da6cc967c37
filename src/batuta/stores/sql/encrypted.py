"""Counts the values of encrypted columns by encryption key, and encrypts all of them again with the first key of the
key ring (a rotation).

A rotation reads a table's rows in the order of their ids, and writes a bounded number of rows in each transaction. It
skips values that already use the first key, so an interrupted rotation continues where it stopped.
"""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from dataclasses import field
from typing import Any, Final, Literal
from uuid import uuid4

from batuta.kernel.storage.encryption import MARK, Encryption, is_sealed, name_of_key
from batuta.kernel.storage.json import Json
from batuta.kernel.values import dataclass
from batuta.stores.sql.database import AsJson, Database, Query, Row, Transaction
from batuta.stores.sql.queries import in_dialect, query_of

AT_A_TIME: Final = 200
# Number of passes over a column. A pass skips rows that another process has locked; the next pass tries them again.
PASSES: Final = 3
_FIRST: Final = {"uuid": "00000000-0000-0000-0000-000000000000", "text": ""}


@dataclass(frozen=True, slots=True, kw_only=True)
class EncryptedColumn:
    """A column whose values ``Encryption`` encrypts. ``id`` is the primary key of the table.

    ``is_json`` is False for a text column. ``in_list`` is True if the column contains a list whose first two elements
    are encrypted together. ``digest`` names a column with a digest of the plain value; when the plain value is
    encrypted, a random string replaces this digest.
    """

    table: str
    column: str
    id: str = "id"
    kind: Literal["uuid", "text"] = "uuid"
    is_json: bool = True
    in_list: bool = False
    digest: str | None = None

    @property
    def about(self) -> str:
        return f"{self.table}.{self.column}"


# The engine's encrypted columns.
COLUMNS: Final = (
    EncryptedColumn(table="tasks", column="args", in_list=True),
    EncryptedColumn(table="tasks", column="result"),
    EncryptedColumn(table="tasks", column="progress"),
    EncryptedColumn(table="schedules", column="args", id="name", kind="text"),
    EncryptedColumn(table="log_lines", column="line", is_json=False),
)


@dataclass(slots=True)
class KeyUse:
    """How many of a column's values each key has encrypted. ``plain`` counts the values that are not encrypted."""

    plain: int = 0
    by_key: Counter[str] = field(default_factory=Counter)


class EncryptedColumns:
    def __init__(self, database: Database, encryption: Encryption, columns: Sequence[EncryptedColumn]) -> None:
        self._database = database
        self._encryption = encryption
        self.columns = columns

    async def count(self, column: EncryptedColumn) -> KeyUse:
        use, after = KeyUse(), _FIRST[column.kind]
        query = self._query(column, "TRUE", writes=False)
        while rows := await self._database.all(query, after=after, limit=10 * AT_A_TIME):
            for row in rows:
                if (sealed := _read_ciphertext(row[column.column], column)) is None:
                    use.plain += not _is_empty(row[column.column])
                else:
                    use.by_key[name_of_key(sealed.removeprefix(MARK))] += 1
            after = str(rows[-1][column.id])
        return use

    async def rotate(self, column: EncryptedColumn) -> AsyncIterator[int]:
        """Encrypt every value with the first key of the key ring. After each transaction, yield the number of values
        encrypted in it.
        """
        current = f"%{MARK}v1.{self._encryption.names[0]}.%"
        older = self._query(column, f"CAST({column.column} AS TEXT) NOT LIKE :current", writes=True)
        for _ in range(PASSES):
            after, total = _FIRST[column.kind], 0
            while True:
                async with self._database.transaction() as transaction:
                    rows = await transaction.all(older, after=after, limit=AT_A_TIME, current=current)
                    changed = [each for row in rows if (each := self._again(row, column)) is not None]
                    await self._write(transaction, column, changed)
                if not rows:
                    break
                after, total = str(rows[-1][column.id]), total + len(changed)
                yield len(changed)
            if total == 0:
                return

    def _again(self, row: Row, column: EncryptedColumn) -> dict[str, Any] | None:
        """Return a row's values, encrypted again with the first key. Return None if the row contains no value to
        encrypt, or if its value is encrypted with a key that is not in the key ring.
        """
        stored, sealed = row[column.column], _read_ciphertext(row[column.column], column)
        if _is_empty(stored) or (
            sealed is not None and name_of_key(sealed.removeprefix(MARK)) not in self._encryption.names
        ):
            return None
        if column.in_list:
            plain = [stored[0], stored[1]] if sealed is None else self._encryption.decrypt(sealed, column.about)
            new: Json = [self._encryption.encrypt(plain, column.about), {}, *stored[2:]]
        else:
            new = self._encryption.encrypt(self._encryption.decrypt(stored, column.about), column.about)
        digest = {} if column.digest is None or sealed is not None else {"digest": str(uuid4())}
        return {"id": str(row[column.id]), "new": AsJson(new) if column.is_json else new, **digest}

    async def _write(self, transaction: Transaction, column: EncryptedColumn, rows: Sequence[dict[str, Any]]) -> None:
        for fields in {tuple(row) for row in rows}:
            changes = f"{column.column} = :new" + (f", {column.digest} = :digest" if "digest" in fields else "")
            text = f"UPDATE {column.table} SET {changes} WHERE {column.id} = :id"
            query = in_dialect(query_of("rotate", text, writes=True), self._database.dialect)
            await transaction.run_many(query, [row for row in rows if tuple(row) == fields])

    def _query(self, column: EncryptedColumn, condition: str, *, writes: bool) -> Query:
        is_locked = writes and self._database.dialect == "postgres"
        text = (
            f"SELECT {column.id}, {column.column} FROM {column.table}"
            f" WHERE {column.id} > :after AND {column.column} IS NOT NULL AND {condition}"
            f" ORDER BY {column.id} LIMIT :limit{' FOR UPDATE SKIP LOCKED' if is_locked else ''}"
        )
        return in_dialect(query_of("encrypted", text, writes=writes), self._database.dialect)


def _read_ciphertext(stored: object, column: EncryptedColumn) -> str | None:
    """Return the encrypted text in a stored value, or None if the value is not encrypted."""
    value = stored[0] if column.in_list and isinstance(stored, list) and stored else stored
    return value if isinstance(value, str) and is_sealed(value) and name_of_key(value.removeprefix(MARK)) else None


def _is_empty(stored: object) -> bool:
    """Return whether the value needs no encryption because it is JSON null, or the empty list that replaces erased
    arguments.
    """
    return stored is None or stored == []
