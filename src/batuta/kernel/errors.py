"""Every error the engine raises.

    BatutaError
    ├── ConfigError                 the environment, the command line or the code configures something invalid
    │   ├── UnknownSetting          an unknown setting; the message suggests the nearest known name
    │   │   └── StrangeSetting      an unknown setting without a similar known name
    │   ├── InvalidSetting          a setting with an invalid value
    │   ├── MissingSetting          a setting that is required in production
    │   │   └── MissingBeside       a setting that another setting requires
    │   ├── MarkerMismatch          the database belongs to another project
    │   ├── UnknownApp              --app names no application
    │   ├── InvalidCron             a schedule that cannot be parsed, or would never fire
    │   ├── InvalidName             an invalid name of a job, loop, scope or endpoint
    │   │   ├── InvalidLimit        a limit of a task or stage with an invalid value
    │   │   └── InvalidToken        a token without a scope, or with an invalid network
    │   ├── InvalidJob              a job that cannot be scheduled as it is declared
    │   │   └── InvalidSchedule     a schedule in the database that cannot be created or changed like this
    │   │       └── ScheduleTaken   another schedule has the name
    │   ├── InvalidTask             a task whose function or options cannot be used
    │   ├── InvalidLoop             a loop whose limits contradict each other
    │   ├── InvalidSections         the weights of the health score do not add up to 100
    │   ├── InvalidWindow           a window with invalid hours or days
    │   ├── UnknownWord             an unknown job, category, profile, window or switch
    │   │   ├── StrangeWord         an unknown word without a similar known word
    │   │   └── MissingWord         an unknown word where no word is known
    │   ├── AmbiguousId             an abbreviated id that matches several ids
    │   ├── BackupDamaged           a backup file that is damaged or incomplete
    │   ├── BackupForeign           a backup of another kind or version of database
    │   ├── BackupUnwritable        the backup file cannot be written
    │   ├── RestoreRefused          a restore that would destroy data or cannot succeed
    │   ├── AddressTaken            another process listens on the address
    │   └── QueryFileError          the SQL files and the code do not match
    ├── StoreError
    │   ├── StoreUnavailable        transient: wait and retry
    │   │   ├── StoreNotOpen        the database was used before it was opened, or after it was closed
    │   │   ├── StoreTimeout        a statement or connection exceeded its time limit
    │   │   │   └── RowLocked       another transaction held a row lock for too long
    │   │   ├── PoolerNotDeclared   a pooler gives every transaction another session, and DATABASE_URL does not declare it
    │   │   ├── StoreReplaced       the database file was deleted or replaced while it was open
    │   │   └── StoreReadOnly       the server accepts no writes now
    │   │       └── FileReadOnly    the folder or file cannot be written
    │   │           └── FolderMissing   the folder of the database file does not exist
    │   ├── StoreConflict           a unique key or another constraint is violated
    │   ├── SchemaOutOfDate         run the migrations
    │   ├── MissingIndexes          a queue table lacks an index; the message has the statement to add
    │   ├── MigrationChanged        the text of an applied migration has changed
    │   ├── StatementRefused        the database rejects the statement: a defect of the program
    │   ├── QueryRefused            the database rejects a query that an operator typed
    │   └── TransactionMisuse       a transaction opened inside another one, or used after its end
    │       └── ConcurrentStatements  two statements at the same time on one transaction
    ├── UnstorableValue             a value that the database would return changed
    │   └── PayloadTooLarge         a value larger than BATUTA_MAX_PAYLOAD_BYTES
    ├── ActionRefused               an action of the dashboard cannot be performed; nothing was changed
    ├── ForeignConnection           a connection of another library that cannot be used to enqueue
    ├── TaskFailed                  the awaited task failed
    ├── TaskCancelled               the awaited task was cancelled
    ├── TaskUnknown                 the awaited task does not exist, or its result was deleted
    ├── EncryptionError             a stored value cannot be decrypted
    │   ├── KeyMissing              the value's key is not in BATUTA_KEYS
    │   └── DamagedValue            the value was changed, or belongs to another column
    ├── ChildFailed                 the function of a task raised an error in its child process
    ├── ResourceFailed              an object that the program provides could not be created at start-up
    ├── ResourceMissing             a provided object was used in a process that did not create it
    ├── BatchEnded                  a task for a batch that has ended or was cancelled
    ├── JobRefused                  a requested run may not start now
    ├── ExitRefused                 the code of a job or a loop tried to end the process
    ├── InvalidEffect               the effect of an outcome is neither Writes nor an async function
    ├── EffectFailed                the effect of an item failed because of another service, or exceeded its time limit
    ├── DeliveryRefused             an external service rejected a delivery
    ├── LoopGaveUp                  a loop failed too often in a row; its process ends and is restarted
    ├── StartAgain                  the process shut down normally and requests a restart
    │   ├── CancelIgnored           a task ignores its cancellation
    │   └── Recycled                the process has grown too large or too old
    └── DeadlineExceeded            a call exceeded its time limit

The class of an error holds its English sentence, with the names of facts in braces. ``error.facts`` holds the values,
so that ``batuta.texts`` can render the sentence in the operator's language. Every sentence ends with the next step.
"""

from string import Formatter
from typing import ClassVar

from batuta.kernel.reasons import Reason


class BatutaError(Exception):
    """The base class of the engine's errors. The ``sentence`` of every subclass ends with the next step for the operator."""

    sentence: ClassVar[str]

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__(self.sentence.format(**facts))


def reason_of_error(error: BatutaError) -> Reason:
    """Convert an error to a storable reason. The reason's code is ``error.`` plus the class name; its facts are the
    values that the error's sentence contains.
    """
    named = {name for _, name, _, _ in Formatter().parse(error.sentence) if name}
    facts = {name: fact for name, fact in error.facts.items() if name in named}
    return Reason.restore(f"error.{type(error).__name__}", str(error), facts)


class ConfigError(BatutaError):
    sentence = "{problem}: {next_step}"


class UnknownSetting(ConfigError):
    sentence = "{name} is not a setting: did you mean {nearest}? Rename or unset {name}"


class StrangeSetting(UnknownSetting):
    sentence = "{name} is not a setting: rename or unset {name}; docs/reference.md lists the settings"


class InvalidSetting(ConfigError):
    sentence = "{name} has an invalid value: {why}. Correct it and start again"


class MissingSetting(ConfigError):
    sentence = (
        "{name} is not set: set it, or set {name}_FILE to the path of a file that contains it, and start again; "
        "on your own machine only, you can set APP_ENV=development instead"
    )


class MissingBeside(MissingSetting):
    sentence = (
        "{name} is not set, and {beside} needs it: set it, or set {name}_FILE to the path of a file that contains it, "
        "and start again"
    )


class MarkerMismatch(ConfigError):
    sentence = (
        "this database belongs to project '{found}', not '{wanted}': check DATABASE_URL and {setting} "
        "(`batuta migrate` marks a database without a project)"
    )


class UnknownApp(ConfigError):
    sentence = "no application at '{app}': {why}. Give --app module:object, where object is a Batuta application"


class InvalidCron(ConfigError):
    sentence = "'{cron}' is not a schedule: {why}"


class InvalidSections(ConfigError):
    sentence = "the sections of the health score are worth {total} points: give them weights that add up to {whole}"


class InvalidName(ConfigError):
    sentence = "'{name}' cannot be the name of a {kind}: {why}"


class InvalidLimit(InvalidName):
    sentence = "{limit} is not a valid limit: {why}"


class InvalidToken(InvalidName):
    sentence = "the token '{name}' was not created: {why}"


def require(kind: str, name: str, condition: object, why: str) -> None:
    """Raise InvalidName with the reason ``why`` unless the condition is true."""
    if not condition:
        raise InvalidName(name=name, kind=kind, why=why)


class InvalidJob(ConfigError):
    sentence = "job '{job}' cannot be scheduled: {why}. Correct it where it is declared and start again"


class InvalidSchedule(InvalidJob):
    sentence = "schedule '{job}' was refused: {why}"


class ScheduleTaken(InvalidSchedule):
    sentence = "schedule '{job}' already exists: edit it, or choose another name"


class InvalidTask(ConfigError):
    sentence = "task {task} cannot be registered: {why}"


class ChildFailed(BatutaError):
    sentence = (
        "the function raised {raised} in its child process: correct the function; the stack shows the line\n{stack}"
    )


class ResourceFailed(BatutaError):
    sentence = (
        "resource {resource} could not be started ({why}): correct its function, or the service that it connects to, "
        "and start again"
    )


class ResourceMissing(BatutaError):
    sentence = (
        "resource {resource} is not started here: it exists in the processes that run work; in a test, write"
        " `async with work.resources.started():` or `with {resource}.replaced_by(…):`"
    )


class InvalidLoop(ConfigError):
    sentence = "loop {loop} cannot run as it is declared: {why}"


class InvalidWindow(ConfigError):
    sentence = "window '{window}' is invalid: {why}. Write it as in `batuta windows set morning 10:00 --minutes 120 --days 1-5`"


class UnknownWord(ConfigError):
    sentence = "there is no {kind} '{word}': did you mean {nearest}?"


class StrangeWord(UnknownWord):
    sentence = "there is no {kind} '{word}', only {known}"


class MissingWord(UnknownWord):
    sentence = "there is no {kind} '{word}': check the name or id"


class AmbiguousId(ConfigError):
    sentence = "several ids begin with {id}: {candidates}. Write more characters of the id"


class AddressTaken(ConfigError):
    sentence = "the process cannot listen on {host}:{port} ({why}): stop the other program, or set another {setting}"


class BackupDamaged(ConfigError):
    sentence = "the backup {file} cannot be used ({why}): use another backup; nothing was changed"


class BackupForeign(ConfigError):
    sentence = "the backup {file} cannot be restored here ({why}): {next_step}; nothing was changed"


class BackupUnwritable(ConfigError):
    sentence = "the backup {file} cannot be written ({why}): choose another file or folder"


class RestoreRefused(ConfigError):
    sentence = "the database was not restored ({why}): {next_step}"


class QueryFileError(ConfigError):
    sentence = "{file}: {why}"


class StoreError(BatutaError):
    sentence = "the database failed: {why}"


class StoreUnavailable(StoreError):
    sentence = (
        "the database at {where} cannot be used now ({why}): check that it is running and reachable, then try again"
    )


class StoreNotOpen(StoreUnavailable):
    """The database was used before it was opened, or after it was closed."""

    sentence = "the database at {where} is not open: write `async with work:` around the call first"


class StoreTimeout(StoreUnavailable):
    sentence = (
        "the database at {where} did not finish in time ({why}): try again, or find the transaction that is blocking it"
    )


class RowLocked(StoreTimeout):
    """Another transaction held a row lock for longer than the lock timeout."""

    sentence = (
        "another transaction holds a row lock in the database at {where} ({why}): end that transaction, or try again"
    )


class StoreReplaced(StoreUnavailable):
    """The database file was deleted or replaced while the process had it open. Later writes would be lost, so the
    process must end.
    """

    sentence = (
        "the database file {where} was {what} while this process had it open, so no more writes are accepted: "
        "restart the process; if the file is missing, put it back first with `batuta restore`"
    )


class PoolerNotDeclared(StoreUnavailable):
    sentence = (
        "the database at {where} is behind a pooler that gives every transaction another session ({why}): "
        "add ?pooler=transaction to DATABASE_URL and start again"
    )


class StoreConflict(StoreError):
    sentence = "the database refused the change: {why}"


class StoreReadOnly(StoreUnavailable):
    """The database currently accepts no writes: a cluster is electing another primary, or the file system is mounted
    read-only.
    """

    sentence = (
        "the database at {where} is read-only now ({why}): wait for the end of a failover, "
        "or name the primary server in DATABASE_URL"
    )


class FileReadOnly(StoreReadOnly):
    sentence = (
        "{where} cannot be written ({why}): give this process's user write permission there, "
        "or choose another DATABASE_URL"
    )


class FolderMissing(FileReadOnly):
    sentence = (
        "the database folder {folder} does not exist: create it (`mkdir -p {folder}`) or choose another DATABASE_URL"
    )


class SchemaOutOfDate(StoreError):
    sentence = "this code needs migration {missing}, which is not applied to the database: run `batuta migrate`"


class MissingIndexes(StoreError):
    """A table that serves as a queue lacks an index that the queue's statements use."""

    sentence = "the queue table {tables} lacks an index: add this to a migration of your program, then migrate:\n{ddl}"


class MigrationChanged(StoreError):
    sentence = (
        "migration {migration} was applied with a different text: restore the original file, and put the change in a new "
        "migration"
    )


class StatementRefused(StoreError):
    sentence = "the database refused a statement ({why}): this is a mistake in the program: report it to its developers"


class QueryRefused(StoreError):
    """The database rejected a query that an operator typed."""

    sentence = "the database refused the query ({why}): correct it; only a single read-only statement is possible"


class TransactionMisuse(StoreError):
    sentence = "{why}: use the open transaction until the end of its block, for example with within=transaction"


class UnstorableValue(BatutaError, TypeError, ValueError):
    sentence = "the {kind} cannot be stored: {why}"


class PayloadTooLarge(UnstorableValue):
    sentence = (
        "the {kind} cannot be stored: {size} bytes of JSON, and the limit is {limit}: store the data in a table or a file "
        "and pass its id, or raise BATUTA_MAX_PAYLOAD_BYTES"
    )


class ConcurrentStatements(TransactionMisuse):
    sentence = "two statements ran at the same time on one transaction: await each one before the next"


class ActionRefused(BatutaError):
    """A dashboard action cannot be performed. The action's form shows ``why``, which ends with the next step."""

    sentence = "{why}"


class ForeignConnection(BatutaError, TypeError):
    sentence = "a task cannot be enqueued with a connection of type {kind}: {why}"


class TaskFailed(BatutaError):
    sentence = "task {task} {id} failed ({why}): correct the cause and enqueue it again"


class TaskCancelled(BatutaError):
    sentence = "task {task} {id} was cancelled ({why}): enqueue it again if its result is needed"


class TaskUnknown(BatutaError, LookupError):
    sentence = "no task has the id {id}, or its result has expired: check the id, or raise keep_result"


class EncryptionError(BatutaError):
    sentence = "a stored value cannot be decrypted: check BATUTA_KEYS"


class KeyMissing(EncryptionError):
    sentence = (
        "a stored value is encrypted with the key {key}, which is not in BATUTA_KEYS: add this key to BATUTA_KEYS and "
        "start the process again; `batuta keys list` counts the values encrypted with each key"
    )


class DamagedValue(EncryptionError):
    sentence = (
        "a stored value that the key {key} encrypted is damaged, or belongs to another column: restore it from a backup"
    )


class BatchEnded(BatutaError):
    sentence = "batch {id} has ended or was cancelled, and accepts no further tasks: create another batch"


class JobRefused(BatutaError):
    sentence = "{job} was not started ({why}): {next_step}"


class ExitRefused(BatutaError):
    sentence = (
        "{raised} was raised by the code of a job or a loop, which may not end the process: raise an ordinary exception"
    )


class InvalidEffect(BatutaError, TypeError):
    sentence = (
        "the effect of the outcome cannot be executed ({why}): return Writes(((query, values),)) with statements from"
        " query_of or load_queries, or an async function that takes the transaction"
    )


class EffectFailed(BatutaError):
    sentence = "the effect of an item failed with {raised}, so the item failed too: the log has the traceback"


class DeliveryRefused(BatutaError):
    sentence = "{sink} answered HTTP {status}: check its address, and that it still accepts messages"


class LoopGaveUp(BatutaError):
    sentence = (
        "loop {loop} failed {failures} times in a row, the last time with {error}: "
        "the process ends so that it can be started again"
    )


class StartAgain(BatutaError):
    sentence = "{why}: the process ends so that it can be started again"


class CancelIgnored(StartAgain):
    sentence = "{what} in loop {loop} ignores its cancellation: the process ends and is started again"


class Recycled(StartAgain):
    sentence = "the process {why}: it ends so that it can be started again"


class DeadlineExceeded(BatutaError):
    sentence = "{what} did not end by {deadline}: extend the deadline, or reduce the work"
