"""Every error the engine raises.

    BatutaError
    ├── ConfigError                 the environment or the command line asks for something impossible
    │   ├── UnknownSetting          an unknown name, with the nearest known one
    │   │   └── StrangeSetting      no known name resembles it
    │   ├── InvalidSetting          an invalid value
    │   ├── MissingSetting          production needs it
    │   │   └── MissingBeside       another setting needs it
    │   ├── MarkerMismatch          this database belongs to another project
    │   ├── UnknownApp              --app names nothing that can run
    │   ├── InvalidCron             a schedule that cannot be read, or would never fire
    │   ├── InvalidName             an invalid name of a job, loop, scope or endpoint
    │   ├── InvalidJob              a job that cannot be scheduled as it is declared
    │   ├── InvalidLoop             a loop whose limits contradict each other
    │   ├── InvalidSections         a health score whose sections are not worth a hundred points
    │   ├── InvalidWindow           invalid hours
    │   ├── UnknownWord             an unknown job, category, profile, window or switch
    │   │   └── StrangeWord         no known word resembles it
    │   ├── AmbiguousId             the beginning of several ids
    │   ├── BackupDamaged           a backup file that cannot be trusted
    │   ├── BackupForeign           a backup of another kind or version of database
    │   ├── BackupUnwritable        the backup file cannot be written
    │   ├── RestoreRefused          a restore that would harm
    │   ├── AddressTaken            another process listens there
    │   └── QueryFileError          the SQL texts and the code disagree
    ├── StoreError
    │   ├── StoreUnavailable        transient: rest and try again
    │   │   ├── StoreTimeout        it took longer than it may
    │   │   │   └── RowLocked       another transaction holds a row
    │   │   ├── PoolerNotDeclared   a pooler that was not recognised gives every transaction another session
    │   │   ├── StoreReplaced       the database file was deleted or replaced while it was open
    │   │   └── StoreReadOnly       the server accepts no writes now
    │   │       └── FileReadOnly    the folder or file cannot be written
    │   │           └── FolderMissing   there is no such folder
    │   ├── StoreConflict           a unique key or another constraint is violated
    │   ├── SchemaOutOfDate         run the migrations
    │   ├── MigrationChanged        the text of an applied migration has changed
    │   ├── StatementRefused        the database rejects the statement: a defect of the program
    │   └── TransactionMisuse       opened inside another, or used after its end
    │       └── ConcurrentStatements  two statements at the same time
    ├── UnstorableValue             a value that the database would not return as it was given
    │   └── PayloadTooLarge         it is larger than BATUTA_MAX_PAYLOAD_BYTES
    ├── JobRefused                  a requested run may not start now
    ├── ExitRefused                 the code of a job or a loop tried to end the process
    ├── EffectFailed                the effect of an item met an outage elsewhere, or used up its time
    ├── DeliveryRefused             an external service rejected a delivery
    ├── LoopGaveUp                  too many failures in a row; the process should end and be started again
    ├── StartAgain                  the process ended in order and requests a restart
    │   ├── CancelIgnored           a task ignores its cancellation
    │   └── Recycled                it has grown too large or too old
    └── DeadlineExceeded            the time limit is over

A class holds its sentence once, with facts as names in braces; ``error.facts`` keeps them, so that ``batuta.texts`` renders the
sentence in the operator's language. Every sentence ends with the next step.
"""

from string import Formatter
from typing import ClassVar

from batuta.kernel.reasons import Reason


class BatutaError(Exception):
    """The base of every error of the engine; its sentence ends with the next step."""

    sentence: ClassVar[str]

    def __init__(self, **facts: object) -> None:
        self.facts = facts
        super().__init__(self.sentence.format(**facts))


def reason_of_error(error: BatutaError) -> Reason:
    """The error as a reason to be stored, with the facts of its sentence; rendered by the class of the error."""
    named = {name for _, name, _, _ in Formatter().parse(error.sentence) if name}
    facts = {name: fact for name, fact in error.facts.items() if name in named}
    return Reason.restore(f"error.{type(error).__name__}", str(error), facts)


class ConfigError(BatutaError):
    sentence = "{problem}: {next_step}"


class UnknownSetting(ConfigError):
    sentence = "{name} is not a setting: did you mean {nearest}? Rename it or unset it"


class StrangeSetting(UnknownSetting):
    sentence = "{name} is not a setting: rename it or unset it; docs/reference.md lists those there are"


class InvalidSetting(ConfigError):
    sentence = "{name} cannot be that: {why}. Correct it and start again"


class MissingSetting(ConfigError):
    sentence = (
        "{name} is not set and APP_ENV is production: set it (or {name}_FILE, a file that holds it) and start again"
    )


class MissingBeside(MissingSetting):
    sentence = "{name} is not set and {beside} needs it: set it (or {name}_FILE, a file that holds it) and start again"


class MarkerMismatch(ConfigError):
    sentence = (
        "this database belongs to project '{found}', not '{wanted}': check DATABASE_URL and {setting} "
        "(an unmarked database is marked by `batuta migrate`)"
    )


class UnknownApp(ConfigError):
    sentence = "no application at '{app}': {why}. Give --app module:object, where object is a Batuta"


class InvalidCron(ConfigError):
    sentence = "'{cron}' is not a schedule: {why}. Write five fields, as in '*/5 8-19 * * 1-5'"


class InvalidSections(ConfigError):
    sentence = "the sections of the health score are worth {total} points: give them weights that add up to {whole}"


class InvalidName(ConfigError):
    sentence = "'{name}' cannot be the name of a {kind}: {why}"


class InvalidJob(ConfigError):
    sentence = "job '{job}' cannot be scheduled: {why}. Correct it where it is declared and start again"


class InvalidLoop(ConfigError):
    sentence = "loop {loop} cannot run as it is declared: {why}"


class InvalidWindow(ConfigError):
    sentence = "window '{window}' cannot be kept: {why}. Write it as in `batuta windows set morning 10:00 --minutes 120 --days 1-5`"


class UnknownWord(ConfigError):
    sentence = "there is no {kind} '{word}': did you mean {nearest}?"


class StrangeWord(UnknownWord):
    sentence = "there is no {kind} '{word}', only {known}"


class AmbiguousId(ConfigError):
    sentence = "several ids begin with {id}: {candidates}. Write more of the one you mean"


class AddressTaken(ConfigError):
    sentence = "{host}:{port} cannot be listened on ({why}): stop the other program, or set another {setting}"


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
    sentence = "the database at {where} cannot be used now ({why}): check that it runs and is reachable, then try again"


class StoreTimeout(StoreUnavailable):
    sentence = "the database at {where} did not finish in time ({why}): try again, or look for what blocks it"


class RowLocked(StoreTimeout):
    """Another transaction held a row lock for longer than the lock timeout."""

    sentence = (
        "another transaction holds a row lock in the database at {where} ({why}): "
        "end the transaction that holds it, or try again"
    )


class StoreReplaced(StoreUnavailable):
    """Writes since then are lost; the process must end and open the current file."""

    sentence = (
        "the database file {where} was {what} while this process had it open, so nothing more is accepted: "
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
    """Unavailable while it lasts: a cluster that elects another primary, or a file system mounted read-only."""

    sentence = (
        "the database at {where} is read-only now ({why}): wait for the end of a failover, "
        "or name the primary server in DATABASE_URL"
    )


class FileReadOnly(StoreReadOnly):
    sentence = (
        "{where} cannot be written ({why}): give the user who runs this the right to write there, "
        "or choose another DATABASE_URL"
    )


class FolderMissing(FileReadOnly):
    sentence = (
        "the folder {folder} of the database is not there: make it (`mkdir -p {folder}`) or choose another DATABASE_URL"
    )


def is_store_away(error: BaseException) -> bool:
    """Whether the store is temporarily unusable: unreachable, too slow or read-only. A retry may succeed."""
    return isinstance(error, StoreUnavailable)


class SchemaOutOfDate(StoreError):
    sentence = "migration {missing} is not applied to the database and this code needs it: run `batuta migrate`"


class MigrationChanged(StoreError):
    sentence = (
        "migration {migration} was applied with another text: restore the file it was, and put the change in a new one"
    )


class StatementRefused(StoreError):
    sentence = "the database refused a statement ({why}): this is a mistake in the program, report it"


class TransactionMisuse(StoreError):
    sentence = "{why}: pass on the transaction you have and use it until its block ends"


class UnstorableValue(BatutaError, TypeError, ValueError):
    sentence = "the {kind} cannot be stored: {why}"


class PayloadTooLarge(UnstorableValue):
    sentence = (
        "the {kind} cannot be stored: {size} bytes of JSON, and the limit is {limit}: store the data in a table or a file "
        "and pass its id, or raise BATUTA_MAX_PAYLOAD_BYTES"
    )


class ConcurrentStatements(TransactionMisuse):
    sentence = "two statements ran at the same time on one transaction: await each one before the next"


class JobRefused(BatutaError):
    sentence = "{job} was not started ({why}): {next_step}"


class ExitRefused(BatutaError):
    sentence = (
        "{raised} was raised by the code of a job or a loop, which may not end the process: raise an ordinary exception"
    )


class EffectFailed(BatutaError):
    sentence = (
        "the effect of an item failed with {raised}, and the engine's own database is available: the item failed, "
        "look for the cause in the traceback"
    )


class DeliveryRefused(BatutaError):
    sentence = "{sink} answered HTTP {status}: check its address, and that it still takes messages"


class LoopGaveUp(BatutaError):
    sentence = "loop {loop} failed {failures} times in a row, last with {error}: the process ends so that it can be started again"


class StartAgain(BatutaError):
    sentence = "{why}: the process ends so that it can be started again"


class CancelIgnored(StartAgain):
    sentence = "{what} in loop {loop} ignores its cancellation: the process ends and is started again"


class Recycled(StartAgain):
    sentence = "the process {why}: it ends so that it can be started again"


class DeadlineExceeded(BatutaError):
    sentence = "{what} did not end by {deadline}: give it longer, or less to do"
