"""Builds a queue's SQL for one table, by filling the table's names into the templates ``statements/queue*.sql``."""

from collections.abc import Mapping, Sequence
from functools import lru_cache

from batuta.kernel.reasons import ReasonCode, define, encode, prefix_of
from batuta.kernel.values import dataclass
from batuta.queue.item import QueueTable
from batuta.queue.outcome import WAITS_ALONE
from batuta.stores.sql.database import DIALECTS, Dialect, Query
from batuta.stores.sql.migrations import STATEMENTS
from batuta.stores.sql.queries import SomeQueries, load_text, read_sql
from batuta.stores.sql.queue.indexes import is_one_of, priority_order, ready_condition, unleased_condition
from batuta.stores.sql.queue.settle_sql import (
    assign,
    clock_of,
    is_leased,
    now_of,
    now_once,
    qualify,
    retention_end,
    settle,
    settle_successes,
)

# A claim checks this many priorities one by one. Each check skips items that are not due, regardless of their number.
MOST_LEVELS = 12
# For the remaining priorities, a claim sorts the due items if there are at most this many; otherwise it reads them in
# the order of the index of ready items.
MOST_SORTED = 1_000
# A claim checks this many groups one by one. If they yield too few items, one pass over the waiting rows finds the due
# groups.
MOST_GROUPS = 500
# The state that operators see for a leased row in a table that has no running value.
RUNNING = "running"
WORKER_DIED = define("worker_died", "its worker died while running it")
WORKER_DIED_OFTEN = define("worker_died_often", "its worker died {count} times while running it")
_COUNT = 987_654_321  # a placeholder number in an encoded reason, which an SQL expression replaces


@dataclass(frozen=True, slots=True)
class QueueQueries:
    put: Query
    present: Query
    renew: Query
    lapsing: Query
    rescue: Query
    rescue_seen: Query
    rescue_owned: Query
    release_stray: Query
    owners: Query
    unserved: Query
    rehome: Query
    discard_waiting: Query
    next_at: Query
    note: Query
    last_error: Query
    cancel: Query
    revive: Query
    discard: Query
    item: Query
    listed: Query
    counts: Query
    depth: Query
    pulse: Query


@dataclass(frozen=True, slots=True)
class PostgresClaimQueries:
    claim: Query
    claim_after: Query
    settle_and_claim: Query
    claim_reversed: Query
    somewhere: Query
    lock_groups: Query
    has_more_groups: Query
    lock_due_groups: Query
    claim_groups: Query
    claim_ungrouped: Query
    settle: Query
    still_leased: Query


@dataclass(frozen=True, slots=True)
class SqliteClaimQueries:
    columns: Query
    pick: Query
    pick_reversed: Query
    somewhere: Query
    pick_in_turn: Query
    pick_ungrouped: Query
    take: Query
    taken: Query
    ours: Query
    settle: Query
    settle_successes: Query


@lru_cache(maxsize=1024)
def queue_queries(
    table: QueueTable, dialect: Dialect, own: tuple[str, ...] = ("id",), shared: tuple[str, ...] = ()
) -> QueueQueries:
    """Build the queries for one table. ``own`` lists the columns for which ``put`` receives one value per row;
    ``shared`` lists the columns for which it receives one value for all rows.
    """
    text = _fill_template("queue.sql", {**queue_gaps(table, dialect), **_put_values(table, dialect, own, shared)})
    return load_text(QueueQueries, text, f"queue.sql of {table.name}", dialect)


@lru_cache(maxsize=256)
def postgres_claim_queries(table: QueueTable) -> PostgresClaimQueries:
    text = _fill_template("queue_on_postgres.sql", queue_gaps(table, "postgres"))
    return load_text(PostgresClaimQueries, text, f"queue_on_postgres.sql of {table.name}", "postgres", ["postgres"])


@lru_cache(maxsize=256)
def sqlite_claim_queries(
    table: QueueTable, given: tuple[tuple[str, str], ...] = (("id", "UUID"),)
) -> SqliteClaimQueries:
    """Build the claim queries for SQLite. ``given`` lists a claimed row's columns, each with its type."""
    packed = ", ".join(_pack(f"item.{name}", type) for name, type in given)
    text = _fill_template("queue_on_sqlite.sql", {**queue_gaps(table, "sqlite"), "packed": packed})
    return load_text(SqliteClaimQueries, text, f"queue_on_sqlite.sql of {table.name}", "sqlite", ["sqlite"])


def more_queries(
    file: str, table: QueueTable, dialect: Dialect, queries: type[SomeQueries], *, both: bool = True
) -> SomeQueries:
    """Build the statements in the template ``file`` for one table. If ``both`` is false, the template has statements
    for ``dialect`` only.
    """
    text = _fill_template(file, queue_gaps(table, dialect))
    return load_text(queries, text, f"{file} of {table.name}", dialect, DIALECTS if both else [dialect])


def _pack(column: str, type: str) -> str:
    """Return an SQL expression that encodes a column as JSON. A value that JSON cannot represent is converted, because
    one invalid value would make the whole result unreadable.
    """
    if type == "JSONB":
        return f"CASE WHEN json_valid({column}) THEN json({column}) END"
    return f"iif(typeof({column}) = 'blob', hex({column}), {column})"


def lease_columns(table: QueueTable) -> tuple[str, ...]:
    """Return the columns from which a lease is created, in the order in which a claim returns them."""
    return (table.id, table.fence, table.attempts, table.crashes, table.available_at, table.created_at)


def row_columns(table: QueueTable) -> tuple[str, ...]:
    """Return the columns that follow the lease columns in a claim's result: first the columns that the engine needs,
    then the columns that handlers receive (``given``).
    """
    own = (*([table.state] if table.last_stage else ()), *([table.group] if table.group else ()))
    return tuple(dict.fromkeys((*own, *(table.given or ()))))


def _list_given_columns(table: QueueTable) -> str:
    """Return the columns of a claimed row on PostgreSQL, in forms that the driver decodes quickly: ids as text,
    instants as microseconds, JSON as text.
    """
    if table.given is None:
        return "*"
    id, fence, attempts, crashes, due, created = lease_columns(table)
    instants = (
        f"date_part('epoch', {due}) * 1e6 AS lease_due",
        f"date_part('epoch', {created}) * 1e6 AS lease_created",
    )
    rest = (
        f"coalesce({name}::text, 'null') AS {name}" if name in table.documents else name for name in row_columns(table)
    )
    return ", ".join([f"{id}::text AS lease_id", fence, attempts, crashes, *instants, *rest])


def _fill_template(queries: str, gaps: Mapping[str, str]) -> str:
    return read_sql(STATEMENTS / queries).format_map(gaps)


def _put_values(table: QueueTable, dialect: Dialect, own: Sequence[str], shared: Sequence[str]) -> dict[str, str]:
    """Return the column list and the value list for the INSERT in ``put``, as SQL. By default an item is created now,
    by the database's clock, and due after its delay.
    """
    one, all_ = ("row.value ->> '{}'", ":every ->> '{}'") if dialect == "sqlite" else ("row.{}", "every.{}")
    filled = {column: one.format(column) for column in own} | {column: all_.format(column) for column in shared}
    now = now_of(dialect)
    filled = {table.created_at: now, table.available_at: f"{now} + {_duration(':delay', dialect)}"} | filled
    return {"columns": ", ".join(filled), "filled": ", ".join(filled.values())}


def _duration(microseconds: str, dialect: Dialect) -> str:
    return microseconds if dialect == "sqlite" else f"{microseconds}::bigint * INTERVAL '1 microsecond'"


@lru_cache(maxsize=256)
def queue_gaps(table: QueueTable, dialect: Dialect) -> Mapping[str, str]:
    names = {name: str(getattr(table, name) or "") for name in table.__dataclass_fields__}
    is_waiting, is_ready = unleased_condition(table), ready_condition(table)
    is_limited = f"{is_waiting} AND {table.limit_key} IS NOT NULL AND"
    in_queue = f" AND {table.queue} = :queue" if table.queue else ""
    gaps = names | {
        "table": table.name,
        "clock": clock_of(dialect),
        "given": _list_given_columns(table),
        "is_waiting": is_waiting,
        "is_ready": is_ready,
        "is_unfiled": f"{is_limited} NOT in_line" if table.limit_key else "FALSE",
        "is_in_line": f"{is_limited} in_line" if table.limit_key else "FALSE",
        "limit_name": limit_name(table),
        "lines": "pipeline_lines" if table.queue == table.state else "task_lines",
        "in_queue": in_queue,
        # The condition of the index by due time. Only the statements that need this index contain this condition;
        # otherwise PostgreSQL would also choose this index where the index by priority is the right one.
        "has_due_time": f"{table.available_at} < 'infinity'",
        "not_held": _no_hold_condition(dialect),
        "is_dead": f"{table.state} = '{table.dead}'{_stage_condition(table)}",
        "id_type": "uuid",
        "priority": table.priority or "0",
        "group": table.group or "0",
        "in_group_order": ", ".join([*priority_order(table), table.available_at, table.id]),
        "ready_index": table.ready_index or f"{table.name}_ready",
        "lease_index": f"{table.name}_leased",
        "and_priority": f", {table.priority}" if table.priority and table.given is not None else "",
        "after_last": _after_last_condition(table, ready_condition(table), in_queue),
        "of_level": f" AND {table.priority} = level.value" if table.priority else "",
        "notified": f"coalesce({table.queue}, :notified)" if table.queue else ":notified",
        "own_queue": table.queue or f"'{table.name}'",
        # Wakes the workers of the stage to which the item moves.
        "handed_over": f", pg_notify('batuta', item.{table.state}) IS NULL AS sent"
        if table.queue == table.state
        else "",
        "now": now_once(dialect),
        "is_leased": is_leased(table, dialect, "item"),
        "taken": _take_changes(table, now_once(dialect)),
        "rescued": _rescue_changes(table, dialect),
        "rescued_from": _write_rescued_queue(table),
        "task_name": "name" if table.name == "tasks" else "NULL",
        "released": _release_changes(table, dialect),
        "all_waits_are_delays": "FALSE" if table.fixed_times else "TRUE",
        "started_after_now": f"{table.started_at} > :now" if table.started_at else "TRUE",
        "cancel_wish": qualify(table, dialect, table.cancel_requested) if table.cancel_requested else "FALSE",
    }
    gaps |= _gaps_of_operators(table, dialect, is_waiting)
    gaps |= {"settle": settle(table, dialect), "settle_unlocked": settle(table, dialect, skips_locked=True)}
    gaps["settle_successes"] = settle_successes(table, dialect)
    index = f" INDEXED BY {gaps['ready_index']}" if dialect == "sqlite" else ""
    gaps |= _level_gaps(table, dialect, gaps, index)
    most = MOST_GROUPS if dialect == "postgres" else None
    gaps |= _groups(gaps["group"], f"FROM {table.name}{index} WHERE {is_ready}{in_queue}", most)
    gaps["most_groups"] = str(MOST_GROUPS)
    return gaps


def limit_name(table: QueueTable) -> str:
    """Return the column that identifies an item's limits. This column contains the task's name or, in a pipeline, the
    stage's name.
    """
    return table.state if table.queue == table.state else "name"


def _gaps_of_operators(table: QueueTable, dialect: Dialect, is_waiting: str) -> dict[str, str]:
    return {
        "of_queue": _queue_condition(table),
        "of_pipeline": _pipeline_condition(table),
        "shown_state": _state_expression(table),
        "revived": _stage_of_dead(table) if table.last_stage else f"'{table.ready[0]}'",
        "as_new": _revive_changes(table),
        "unwanted": _cancel_changes(table, dialect, is_waiting),
        "or_is_asked": _or_cancel_condition(table),
        "waits": _waiting_condition(table),
        "touched": f", {table.updated_at} = {now_of(dialect)}" if table.updated_at else "",
        "dropped": assign({**_cancel_values(table, dialect), table.updated_at: now_of(dialect)}),
    }


def _level_gaps(table: QueueTable, dialect: Dialect, gaps: dict[str, str], index: str) -> dict[str, str]:
    """Return the fragments of the claim statement that depend on priorities, for the normal and for the reverse
    order.
    """
    high_first, alone = table.urgent_is_high, "level(value, step) AS (SELECT 0, 1)"
    levels, backwards = (_levels(table, gaps, each, index) for each in (high_first, not high_first))
    pick = _pick if dialect == "postgres" else _pick_on_sqlite
    return {
        "levels": levels,
        "levels_alone": levels.rstrip(",") or alone,
        "pick_in_order": pick(table, gaps, high_first, levels),
        "pick_in_reverse": pick(table, gaps, not high_first, backwards),
        "last_level": _last_level(table, high_first),
        "further": "<" if high_first else ">",
    }


def _after_last_condition(table: QueueTable, is_ready: str, in_queue: str) -> str:
    """Return the SQL condition for waiting rows that follow a given row in claim order. It is false if a row of another
    priority waits.
    """
    condition = (
        f" AND ({table.available_at}, {table.id})"
        " > (TIMESTAMPTZ 'epoch' + :last_due::bigint * INTERVAL '1 microsecond', :last_id::uuid)"
    )
    if table.priority is None:
        return condition
    others = " AND ".join(
        f"(SELECT {table.priority} FROM {table.name} WHERE {is_ready}{in_queue} AND {table.priority} {side} :last_priority"
        # The order makes the planner use the index; it would scan the table for NOT EXISTS.
        f" ORDER BY {table.priority} {direction} LIMIT 1) IS NULL"
        for side, direction in (("<", "DESC"), (">", "ASC"))
    )
    return f" AND {table.priority} = :last_priority{condition} AND {others}"


def _no_hold_condition(dialect: Dialect) -> str:
    """Return the SQL condition that is true if no switch pauses the queue. A switch with an invalid value (neither true
    nor false) also pauses the queue.
    """
    keys = "SELECT value FROM json_each(:holds)" if dialect == "sqlite" else "SELECT jsonb_array_elements_text(:holds)"
    return (
        f"NOT EXISTS (SELECT 1 FROM feature_flags AS held WHERE held.key IN ({keys}) AND held.value <> 'false'"
        f" AND (held.until IS NULL OR held.until > {now_of(dialect)}))"
    )


def _stage_condition(table: QueueTable) -> str:
    """Return the SQL condition that selects a queue's dead items. For a stage, it selects the items that failed at this
    stage.
    """
    if table.queue != table.state:
        return f" AND {table.queue} = :queue" if table.queue else ""
    return f" AND {table.last_stage} = :queue" if table.last_stage else ""


def _stage_of_dead(table: QueueTable) -> str:
    """Return the SQL expression for a dead row's stage: the stage at which the row failed, or the first stage if that
    stage no longer exists.
    """
    stages = ", ".join(f"'{stage}'" for stage in table.ready)
    return f"CASE WHEN {table.last_stage} IN ({stages}) THEN {table.last_stage} ELSE '{table.ready[0]}' END"


def _queue_condition(table: QueueTable) -> str:
    """Return the SQL condition for the rows that operators see in a queue. If the queue is a stage of a pipeline,
    the condition also selects the stage's dead rows (see ``_stage_of_dead``).
    """
    if table.queue is None:
        return "TRUE"
    own = f"{table.queue} = :queue"
    if table.queue != table.state or not table.last_stage:
        return own
    is_dead = f"{table.state} = '{table.dead}' AND {_stage_of_dead(table)} = :queue{_pipeline_condition(table)}"
    return f"({own} OR ({is_dead}))"


def _pipeline_condition(table: QueueTable) -> str:
    return f" AND pipeline = '{table.pipeline}'" if table.pipeline else ""


def _state_expression(table: QueueTable) -> str:
    """Return the SQL expression for the state that operators see. A pipeline's leased row is shown as running, although
    its state column contains the name of its stage.
    """
    if table.running is not None:
        return table.state
    return f"CASE WHEN {table.lease_until} IS NOT NULL THEN '{RUNNING}' ELSE {table.state} END"


def _take_changes(table: QueueTable, now: str) -> str:
    values: dict[str | None, str] = {
        table.attempts: f"{table.attempts} + 1",
        table.fence: f"{table.fence} + 1",
        table.owner: ":owner",
        None if table.running is None else table.state: f"'{table.running}'",
        table.started_at: now,
        table.updated_at: now,
    }
    return assign(values)


def _revive_changes(table: QueueTable) -> str:
    """Return the UPDATE assignments that clear the cancellation request and the expiry of a row that an operator
    retries. Otherwise the retried row would soon be cancelled or pruned.
    """
    sets = [f"{table.cancel_requested} = FALSE"] if table.cancel_requested else []
    sets += [f"{table.expires_at} = NULL"] if table.expires_at else []
    return "".join(f", {each}" for each in sets)


def _cancel_values(table: QueueTable, dialect: Dialect) -> dict[str | None, str]:
    return {
        table.state: f"'{table.cancelled}'",
        table.error: ":reason",
        table.finished_at: now_of(dialect),
        table.expires_at: retention_end(table, dialect),
    }


def _cancel_changes(table: QueueTable, dialect: Dialect, is_waiting: str) -> str:
    """Return the UPDATE assignments that cancel a waiting item, or request the cancellation of a running item. One
    statement does both, because an item that changed its state between two statements would escape cancellation.
    """
    ends, wish = _cancel_values(table, dialect), table.cancel_requested
    sets = {column: f"CASE WHEN {is_waiting} THEN {value} ELSE {column} END" for column, value in ends.items()}
    sets[table.error] = ":reason"
    return assign({**sets, wish: f"CASE WHEN {is_waiting} THEN {wish} ELSE TRUE END"})


def _or_cancel_condition(table: QueueTable) -> str:
    if table.cancel_requested is None:
        return ""
    return f" OR {table.lease_until} IS NOT NULL" + (f" OR {table.doubt} IS NOT NULL" if table.doubt else "")


def _reason_with_count(code: ReasonCode, count: str) -> str:
    """Return an SQL expression that builds a reason in its stored form. ``count`` is an SQL expression for the number
    that appears in the reason's sentence.
    """
    parts = (encode(code(count=_COUNT)) or "").split(str(_COUNT))
    return f" || {count} || ".join(f"'{part}'" for part in parts)


def _rescue_changes(table: QueueTable, dialect: Dialect) -> str:
    """Return the UPDATE assignments that rescue items whose worker process died. If an item had not started, neither a
    crash nor an attempt is counted for it.
    """
    is_unwanted = table.cancel_requested or "FALSE"
    begins = prefix_of(WAITS_ALONE)
    has_waited = f"coalesce(substr({table.error}, 1, {len(begins)}) = '{begins}', FALSE)"
    is_cause = f"({table.crashes} + 1 >= {table.crash_cap} AND NOT {has_waited})"
    back = f"'{table.ready[0]}'" if table.running is not None else table.state
    died_often = _reason_with_count(WORKER_DIED_OFTEN, f"({table.crashes} + 1)")
    values: dict[str | None, str] = {
        table.crashes: f"{table.crashes} + CASE WHEN {has_waited} THEN 0 ELSE 1 END",
        table.attempts: f"{table.attempts} - CASE WHEN {has_waited} THEN 1 ELSE 0 END",
        table.state: f"CASE WHEN {is_unwanted} THEN '{table.cancelled}' WHEN {is_cause} THEN '{table.dead}' ELSE {back} END",
        table.error: f"CASE WHEN {is_cause} THEN {died_often}"
        f" WHEN {has_waited} THEN {table.error} ELSE '{encode(WORKER_DIED())}' END",
        table.finished_at: f"CASE WHEN {is_cause} OR {is_unwanted} THEN {now_of(dialect)} END",
        **_release_values(table),
        table.expires_at: f"CASE WHEN {is_cause} OR {is_unwanted} THEN {retention_end(table, dialect)} END",
        table.last_stage: f"CASE WHEN {is_cause} THEN {table.state} ELSE {table.last_stage} END",
        table.updated_at: now_of(dialect),
    }
    return assign(values)


def _write_rescued_queue(table: QueueTable) -> str:
    """Return the SQL expression for the queue from which an item was rescued. If the rescue made a pipeline item dead,
    its state column no longer names the stage, so the expression reads the last-stage column instead.
    """
    if table.queue is None:
        return f"'{table.name}'"
    if table.queue != table.state:
        return table.queue
    ended = f"coalesce({table.last_stage or 'NULL'}, '{table.name}')"
    return f"CASE WHEN {table.finished_at} IS NULL THEN {table.state} ELSE {ended} END"


def _release_values(table: QueueTable) -> dict[str | None, str]:
    return {table.fence: f"{table.fence} + 1", table.owner: "NULL", table.lease_until: "NULL"}


def _release_changes(table: QueueTable, dialect: Dialect) -> str:
    """Return the UPDATE assignments that undo a claim. The row returns to its state before the claim, or is cancelled
    if cancellation was requested after the claim.
    """
    is_unwanted = table.cancel_requested or "FALSE"
    back = f"'{table.ready[0]}'" if table.running is not None else table.state
    values: dict[str | None, str] = {
        table.attempts: f"{table.attempts} - 1",
        table.state: f"CASE WHEN {is_unwanted} THEN '{table.cancelled}' ELSE {back} END",
        table.finished_at: f"CASE WHEN {is_unwanted} THEN {now_of(dialect)} END",
        **_release_values(table),
        table.expires_at: f"CASE WHEN {is_unwanted} THEN {retention_end(table, dialect)} END",
        table.updated_at: now_of(dialect),
    }
    return assign(values)


def _waiting_condition(table: QueueTable) -> str:
    """Return the SQL condition for waiting rows. In a pipeline it includes rows at removed stages, which no index of
    ready rows covers.
    """
    waits = f"{table.lease_until} IS NULL AND {table.finished_at} IS NULL"
    return waits if table.queue == table.state else f"{waits} AND {is_one_of(table.state, table.ready)}"


def _levels(table: QueueTable, gaps: dict[str, str], high_first: bool, index: str) -> str:
    """Return a recursive CTE that finds the first priorities with waiting items, by skipping from one priority to the
    next in the index.
    """
    if table.priority is None:
        return ""
    direction, beyond = ("DESC", "<") if high_first else ("ASC", ">")
    first = (
        f"SELECT {table.priority} FROM {table.name}{index}"
        f" WHERE {gaps['is_ready']}{gaps['in_queue']} AND {table.priority} IS NOT NULL"
    )
    order = f"ORDER BY {table.priority} {direction} LIMIT 1"
    return (
        f"level(value, step) AS (SELECT ({first} {order}), 1 UNION ALL"
        f" SELECT ({first} AND {table.priority} {beyond} level.value {order}), level.step + 1"
        f" FROM level WHERE level.value IS NOT NULL AND level.step < {MOST_LEVELS}),"
    )


def _last_level(table: QueueTable, high_first: bool) -> str:
    """Return a query for the last of the ``MOST_LEVELS`` priorities that a claim looks up individually. If fewer
    priorities have waiting items, the query returns no row, and the subqueries for further priorities do not run.
    """
    if table.priority is None:
        return "SELECT 0 AS value WHERE FALSE"
    return f"SELECT {'min' if high_first else 'max'}(value) AS value FROM level HAVING count(value) = {MOST_LEVELS}"


def _claim_order(table: QueueTable, high_first: bool) -> list[str]:
    """Return a claim's ORDER BY terms: priority in the given direction, then the oldest item first."""
    by_priority = [] if table.priority is None else [f"{table.priority} {'DESC' if high_first else 'ASC'}"]
    return [*by_priority, table.available_at, table.id]


def _groups(group: str, waiting: str, most: int | None) -> dict[str, str]:
    """Return recursive CTEs that find groups with waiting rows, by skipping from one group to the next in the index.

    The search goes from the group after ``:after`` to the last group, and then from the first group to ``:after``.
    ``most`` limits the number of groups that each of these two searches finds; None means no limit.
    """

    def walk(name: str, first: str = "", until: str = "", most: int | None = most) -> str:
        until += "" if most is None else f" AND {name}.step < {most}"
        return (
            f"{name}(value, step) AS (SELECT (SELECT min({group}) {waiting}{first}), 1 UNION ALL"
            f" SELECT (SELECT min({group}) {waiting} AND {group} > {name}.value), {name}.step + 1 FROM {name}"
            f" WHERE {name}.value IS NOT NULL{until})"
        )

    rest = walk("rest", first=f" AND {group} > :after")
    again = walk("again", until=" AND again.value < :after")
    both = "groups AS (SELECT value FROM rest UNION ALL SELECT value FROM again WHERE value <= :after)"
    return {"groups_from_the_first": walk("groups", most=None), "groups_in_turn": f"{rest}, {again}, {both}"}


def _pick(table: QueueTable, gaps: dict[str, str], high_first: bool, levels: str) -> str:
    """Return the CTE that selects due rows in claim order. The first priorities in this order are looked up
    individually. If at most ``MOST_SORTED`` rows are due, the rows of all other priorities are sorted; otherwise these
    rows are read in index order.
    """
    is_due = f"{table.available_at} <= coalesce(:now, statement_timestamp())"
    waiting = f"FROM {table.name} WHERE {gaps['is_ready']}{gaps['in_queue']} AND {is_due}"
    due = f"SELECT {table.id} {waiting} AND {gaps['not_held']}"
    oldest = f"ORDER BY {table.available_at}, {table.id} LIMIT :limit FOR UPDATE SKIP LOCKED"
    if table.priority is None:
        return f"WITH picked AS MATERIALIZED ({due} {oldest})"
    in_order = f"ORDER BY {', '.join(_claim_order(table, high_first))} LIMIT :limit FOR UPDATE SKIP LOCKED"
    beyond = f"{table.priority} {'<' if high_first else '>'} last.value"
    last = f"({_last_level(table, high_first)}) AS last CROSS JOIN LATERAL"
    return (
        f"WITH RECURSIVE {levels}"
        f" oldest AS MATERIALIZED (SELECT ctid AS place {waiting} AND {gaps['has_due_time']}"
        f" ORDER BY {table.available_at} LIMIT {MOST_SORTED + 1}),"
        f" picked AS MATERIALIZED ("
        f"SELECT due.{table.id} FROM level CROSS JOIN LATERAL"
        f" ({due} AND {table.priority} = level.value {oldest}) AS due WHERE level.value IS NOT NULL"
        f" UNION ALL SELECT few.{table.id} FROM {last}"
        f" ({due} AND ctid = ANY(ARRAY(SELECT place FROM oldest)) AND {beyond} {in_order}) AS few"
        f" WHERE (SELECT count(*) FROM oldest) <= {MOST_SORTED}"
        f" UNION ALL SELECT many.{table.id} FROM {last} ({due} AND {beyond} {in_order}) AS many"
        f" WHERE (SELECT count(*) FROM oldest) > {MOST_SORTED}"
        f" LIMIT :limit)"
    )


def _pick_on_sqlite(table: QueueTable, gaps: dict[str, str], high_first: bool, levels: str) -> str:
    """Return the SQLite query that selects due rows in claim order. SQLite has no LATERAL, so a nested loop keeps the
    order of the priorities, and the index keeps the order within a priority.

    A branch of the query that is not needed compares its index column with NULL, so that it reads no rows. SQLite would
    evaluate any other condition for each row.
    """
    source = f"{table.name} INDEXED BY {gaps['ready_index']}"
    waiting = f"{gaps['is_ready']}{gaps['in_queue']} AND {table.available_at} <="
    free = f"{waiting} (SELECT coalesce(:now, now())) AND {gaps['not_held']}"
    in_order = f"ORDER BY {', '.join(_claim_order(table, high_first))} LIMIT :limit"
    if table.priority is None:
        return f"SELECT rowid AS item FROM {source} WHERE {free} {in_order}"
    last = _last_level(table, high_first)
    beyond = f"{table.priority} {'<' if high_first else '>'}"
    many = f"(SELECT count(*) FROM oldest) > {MOST_SORTED}"
    return (
        f"WITH RECURSIVE {levels}"
        f" oldest(place) AS MATERIALIZED (SELECT rowid FROM {table.name}"
        f" WHERE {waiting} (SELECT coalesce(:now, now()) FROM ({last})) ORDER BY {table.available_at} LIMIT {MOST_SORTED + 1})"
        f" SELECT item FROM ("
        # The LIMIT tells the planner that there are few priorities. Otherwise SQLite would first build a filter from
        # the whole table.
        f"SELECT {table.name}.rowid AS item FROM (SELECT value FROM level LIMIT {MOST_LEVELS}) AS level CROSS JOIN {source}"
        f" WHERE {free} AND {table.priority} = level.value"
        f" UNION ALL SELECT item FROM (SELECT rowid AS item FROM {table.name} NOT INDEXED"
        f" WHERE rowid IN (SELECT place FROM oldest WHERE NOT {many}) AND {free} AND {beyond} ({last}) {in_order})"
        f" UNION ALL SELECT item FROM (SELECT rowid AS item FROM {source}"
        f" WHERE {free} AND {beyond} (SELECT value FROM ({last}) WHERE {many}) {in_order})"
        f") LIMIT :limit"
    )
