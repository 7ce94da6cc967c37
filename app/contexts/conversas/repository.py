"""SQL statements for conversations."""

from batuta.kernel import dataclass
from batuta.sql import Dialect, Query, load_queries


@dataclass(frozen=True, slots=True)
class ConversationQueries:
    doctor: Query
    chip: Query
    phone_of_lid: Query
    learn_lid: Query
    asked_hidden: Query
    resolve_hidden: Query
    open_conversation: Query
    conversation: Query
    came: Query
    went: Query
    count_on_chip: Query
    count_on_doctor: Query
    count_on_conversation: Query
    doctor_spoke: Query
    opt_out_doctor: Query
    opt_out_state: Query
    opt_out_conversation: Query
    opt_out_external: Query
    has_stopped: Query
    open_doubt: Query
    close_doubts: Query
    remove_doctor: Query
    remove_words: Query
    remove_queued_words: Query
    remove_dead_words: Query
    record_outgoing: Query
    got_further: Query
    echoes: Query


def conversation_queries(dialect: Dialect) -> ConversationQueries:
    return load_queries(ConversationQueries, "sql/conversas.sql", dialect)
