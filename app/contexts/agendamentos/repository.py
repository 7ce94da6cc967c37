"""SQL statements for appointments."""

from functools import cache, lru_cache
from pathlib import Path

from app.contexts.agendamentos.model import CAMPOS
from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, in_dialect, load_queries, load_text, query_of

HERE = Path(__file__).parent
# Columns of a new row. The parsing task fills in the remaining columns later.
COLUMNS = (
    "id",
    "chave",
    "chave_natural",
    "importacao_id",
    "aba",
    "linha",
    *CAMPOS,
    "fonte",
    "normalization_status",
    "normalization_job_id",
)
UNCHANGED = ("id",)
FILTERS = {
    "antes_de": "id < :antes_de",
    "leitura": "normalization_status = :leitura",
    "situacao": "status = :situacao",
    "de": "data_agendamento >= :de",
    "ate": "data_agendamento <= :ate",
    "unidade": "nome_unidade = :unidade",
    "importacao": "importacao_id = :importacao",
}
# Columns that are reset when the text to parse changes.
READ = ("normalization_error", "endereco_normalizado", "documento_normalizado", "cpf", "rg", "normalized_at")


@dataclass(frozen=True, slots=True)
class AppointmentQueries:
    known: Query
    known_by_place: Query
    taken: Query
    hold: Query
    hold_many: Query
    change: Query
    cars: Query
    one: Query
    of_job: Query
    counts: Query
    failed: Query
    unread: Query
    chosen: Query
    supersede: Query
    requeue: Query
    source: Query
    sources: Query
    begin: Query
    read: Query
    read_together: Query
    orphans: Query
    give_up: Query


@dataclass(frozen=True, slots=True)
class ImportQueries:
    create: Query
    remember: Query
    remembered: Query
    keep: Query
    advance: Query
    count: Query
    refuse: Query
    finish: Query
    drop: Query
    show: Query
    file: Query
    recent: Query
    interrupted: Query
    resume: Query
    wait: Query
    fail: Query
    forget: Query


@cache
def appointment_queries(dialect: Dialect) -> AppointmentQueries:
    text = (HERE / "sql" / "agendamentos.sql").read_text(encoding="utf-8")
    changed = [each for each in COLUMNS if each not in (*UNCHANGED, "normalization_status", "normalization_job_id")]
    is_same = (
        f"(appointments.fonte = {_row_expression('fonte', dialect)} AND appointments.normalization_status <> 'skipped')"
    )
    read_again = [
        *(f"{each} = CASE WHEN {is_same} THEN appointments.{each} ELSE NULL END" for each in READ),
        *(
            f"{each} = CASE WHEN {is_same} THEN appointments.{each} ELSE {_row_expression(each, dialect)} END"
            for each in ("normalization_status", "normalization_job_id")
        ),
    ]
    gaps = {
        "{readable}": "((:endereco AND (endereco_completo IS NOT NULL OR cep IS NOT NULL))"
        " OR (:documento AND documento_completo IS NOT NULL))",
        "{campos}": ", ".join(CAMPOS),
        "{changed}": ", ".join(f"{each} = {_row_expression(each, dialect)}" for each in changed),
        "{read_again}": ", ".join(read_again),
        "{chaves}": _list_expression("chaves", dialect),
        "{ids}": _list_expression("ids", dialect, "uuid"),
    }
    for gap, filled in gaps.items():
        text = text.replace(gap, filled)
    return load_text(AppointmentQueries, text, "agendamentos.sql", dialect)


@lru_cache(maxsize=100)
def insert_query(dialect: Dialect, columns: tuple[str, ...]) -> Query:
    """Build the statement that inserts new appointments. Rows whose key already exists are skipped.

    The statement names only the given columns: a sheet fills about half of the table's columns, and naming all of them
    would double the cost.
    """
    rows = "json_each(:rows)" if dialect == "sqlite" else "jsonb_populate_recordset(NULL::appointments, :rows)"
    now = ":now" if dialect == "sqlite" else ":now::timestamptz"
    text = (
        f"INSERT INTO appointments ({', '.join(columns)}, created_at, updated_at)"
        f" SELECT {', '.join(_row_expression(each, dialect) for each in columns)}, {now}, {now} FROM {rows} AS row"
        " WHERE TRUE ON CONFLICT DO NOTHING"
    )
    return in_dialect(query_of("insert", text, writes=True), dialect)


@cache
def page_query(dialect: Dialect, filters: tuple[str, ...]) -> Query:
    """Build the query that selects one page of appointments, newest first. The query has conditions only for the given
    filters, so that the database can use an index.
    """
    where = " AND ".join(FILTERS[each] for each in filters) or "TRUE"
    text = f"SELECT * FROM appointments WHERE {where} ORDER BY id DESC LIMIT :limit"
    return in_dialect(query_of("page", text, writes=False), dialect)


def import_queries(dialect: Dialect) -> ImportQueries:
    return load_queries(ImportQueries, HERE / "sql" / "importacao.sql", dialect)


def _row_expression(column: str, dialect: Dialect) -> str:
    return f"row.value ->> '{column}'" if dialect == "sqlite" else f"row.{column}"


def _list_expression(name: str, dialect: Dialect, kind: str = "text") -> str:
    """Return the SQL that selects the elements of a JSON array as rows."""
    if dialect == "sqlite":
        return f"SELECT value FROM json_each(:{name})"
    return f"SELECT jsonb_array_elements_text(:{name})::{kind}"
