"""The database: connections and transactions, named statements, migrations, the audit log, retention and restores."""

from batuta.stores.backup.restoring import DatabaseId, Restored, Restoring, as_values, blind_restores, insert_rows
from batuta.stores.sql.database import AsJson, Database, Dialect, Query, Reading, Row, Transaction
from batuta.stores.sql.encrypted import EncryptedColumn
from batuta.stores.sql.migrations import Mark, Migration, read_migrations
from batuta.stores.sql.queries import in_dialect, load_queries, load_text, query_of, retentions_in
from batuta.stores.sql.tables.audit import AuditLog
from batuta.stores.sql.tables.history import full_id, is_uuid
from batuta.supervise.retention import Retention, keep_for, prune_all

__all__ = [
    "AsJson",
    "AuditLog",
    "Database",
    "DatabaseId",
    "Dialect",
    "EncryptedColumn",
    "Mark",
    "Migration",
    "Query",
    "Reading",
    "Restored",
    "Restoring",
    "Retention",
    "Row",
    "Transaction",
    "as_values",
    "blind_restores",
    "full_id",
    "in_dialect",
    "insert_rows",
    "is_uuid",
    "keep_for",
    "load_queries",
    "load_text",
    "prune_all",
    "query_of",
    "read_migrations",
    "retentions_in",
]
