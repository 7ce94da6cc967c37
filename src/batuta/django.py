"""A backend for Django tasks: ``django.tasks`` in Django 6, or the package ``django-tasks`` in earlier versions.

    TASKS = {"default": {"BACKEND": "batuta.django.BatutaBackend", "OPTIONS": {"app": "shop.background:work"}}}

The backend stores each call as a task in the application that ``app`` names. ``serve_django(work)`` lets this
application's workers run the Django tasks.
"""

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

from django.core.exceptions import ImproperlyConfigured
from django.db import connections
from django.utils import timezone
from django.utils.module_loading import import_string

try:
    from django.tasks import signals
    from django.tasks.backends.base import BaseTaskBackend
    from django.tasks.base import Task, TaskError, TaskResult, TaskResultStatus
    from django.tasks.base import TaskContext as DjangoContext
    from django.tasks.exceptions import TaskResultDoesNotExist
except ImportError:  # for versions before Django 6
    from django_tasks import signals
    from django_tasks.backends.base import BaseTaskBackend
    from django_tasks.base import Task, TaskError, TaskResult, TaskResultStatus
    from django_tasks.base import TaskContext as DjangoContext
    from django_tasks.exceptions import TaskResultDoesNotExist

from batuta import Batuta, Failed, TaskContext, TaskStatus, enqueue_in_sync
from batuta.kernel.reasons import define
from batuta.kernel.storage.json import Json
from batuta.kernel.suggestions import check_options
from batuta.stores.sql.database import Row
from batuta.stores.sql.queries import in_dialect, query_of
from batuta.tasks.task import arguments_of

__all__ = ["BatutaBackend", "serve_django"]

CALL = query_of("django_call", "SELECT queue, priority, args FROM tasks WHERE id = :id", writes=False)
NOT_A_TASK = define("django_task", "{path} is not a Django task: decorate the function with @task()")
STATES = {
    "queued": TaskResultStatus.READY,
    "in_progress": TaskResultStatus.RUNNING,
    "complete": TaskResultStatus.SUCCESSFUL,
    "failed": TaskResultStatus.FAILED,
    "cancelled": TaskResultStatus.FAILED,
}


@check_options
def serve_django(
    work: Batuta,
    *,
    queues: Sequence[str] = ("default",),
    retry: Sequence[float] = (),
    timeout: float = 300,
    keep_result: float = 86_400,
) -> None:
    """Let the workers of ``work`` run the Django tasks in these queues. Times are in seconds.

    ``retry`` lists the waits before the attempts after the first one. The default is an empty list, because Django
    tasks promise no retries.
    """
    for queue in queues:
        work.task(name=_name(queue), queue=queue, retry=list(retry), timeout=timeout, keep_result=keep_result)(_run)


class BatutaBackend(BaseTaskBackend):  # type: ignore[misc] # Django has no types
    """Stores Django tasks in a Batuta application. ``OPTIONS["app"]`` names the application: ``"module:name"``.

    ``OPTIONS["database"]`` names an alias of DATABASES. With this option, a task is stored on Django's own connection,
    so it is committed or rolled back with the caller's transaction. The alias must refer to the application's database.
    """

    supports_defer = True
    supports_async_task = True
    supports_get_result = True
    supports_priority = True

    def enqueue(self, task: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Store a call of a Django task, and return Django's result object for the call, with the status READY."""
        self.validate_task(task)
        result = _result(self.alias, task, "", TaskResultStatus.READY, args, kwargs)
        at = task.run_after
        bound = self._task(task.queue_name).options(
            # In Django a larger number is more urgent; in Batuta it is less urgent.
            priority=-task.priority,
            at=timezone.make_aware(at) if at is not None and timezone.is_naive(at) else at,
            tags=[task.module_path[-100:]],
        )
        call = (task.module_path, result.args, result.kwargs)
        alias = self.options.get("database")
        handle = bound.enqueue_sync(*call) if alias is None else enqueue_in_sync(connections[alias], bound, *call)
        _set(result, id=handle.id, enqueued_at=timezone.now())
        signals.task_enqueued.send(type(self), task_result=result)
        return result

    def get_result(self, result_id: str) -> Any:
        """Return Django's result object for a stored call, with the call's current state. Raises TaskResultDoesNotExist
        if the call is unknown.
        """

        async def read(store: Any) -> tuple[TaskStatus | None, Row | None]:
            status = await store.status(result_id)
            query = in_dialect(CALL, store.database.dialect)
            return status, None if status is None else await store.database.one(query, id=result_id)

        blocking = self.work.tasks.blocking
        assert blocking is not None, "every Batuta object can run blocking calls"
        status, row = blocking.call("get_result", "aget_result", read)
        if status is None or row is None or status.name != _name(row["queue"]):
            raise TaskResultDoesNotExist(result_id)
        (path, args, kwargs), _ = arguments_of(row["args"], self.work.encryption)
        task = import_string(path).using(priority=-row["priority"], queue_name=row["queue"], backend=self.alias)
        result = _result(self.alias, task, result_id, STATES[status.status], args, kwargs, status.attempts)
        _set(
            result,
            enqueued_at=status.enqueue_time,
            started_at=status.start_time,
            last_attempted_at=status.start_time,
            finished_at=status.finish_time,
            _return_value=status.result,
        )
        if status.error is not None:
            # The error's class and message appear only in the log, because they may contain personal data.
            result.errors.append(TaskError(exception_class_path="batuta.errors.TaskFailed", traceback=status.error))
        return result

    @property
    def work(self) -> Batuta:
        """The Batuta application. It is imported on first use, because Django creates the backend before all modules
        are loaded.
        """
        where = self.options.get("app")
        module, _, name = str(where).partition(":")
        try:
            found = getattr(import_module(module), name) if where else None
        except (ImportError, AttributeError) as error:
            raise ImproperlyConfigured(
                f"TASKS: OPTIONS['app'] is '{where}', which cannot be imported: {error}"
            ) from error
        if not isinstance(found, Batuta):
            raise ImproperlyConfigured("TASKS: OPTIONS['app'] must name a Batuta object: write 'shop.background:work'")
        return found

    def _task(self, queue: str) -> Any:
        task = self.work.task_registry.find(_name(queue))
        if task is None:
            raise ImproperlyConfigured(
                f"the application serves no tasks of queue '{queue}': write serve_django(work, queues=['{queue}'])"
            )
        return task


def _name(queue: str) -> str:
    return "django" if queue == "default" else f"django.{queue}"


def _run(context: TaskContext, path: str, arguments: list[Any], named: dict[str, Any]) -> Json | Failed:
    """Call a Django task's function in a separate thread."""
    task = import_string(path)
    if not isinstance(task, Task):
        return Failed(NOT_A_TASK(path=path), permanent=True)
    result = _result(task.backend, task, context.id, TaskResultStatus.RUNNING, arguments, named, context.attempt)
    _set(result, enqueued_at=context.enqueued_at, started_at=timezone.now(), last_attempted_at=timezone.now())
    first = (DjangoContext(task_result=result),) if task.takes_context else ()
    status = TaskResultStatus.FAILED
    signals.task_started.send(BatutaBackend, task_result=result)
    try:
        returned: Json = task.call(*first, *arguments, **named)
        status = TaskResultStatus.SUCCESSFUL
        _set(result, _return_value=returned)
        return returned
    finally:
        _set(result, status=status, finished_at=timezone.now())
        signals.task_finished.send(BatutaBackend, task_result=result)
        connections.close_all()  # the thread ends, so close its connections


def _result(
    alias: str, task: Any, id: str, status: Any, args: Sequence[Any], kwargs: Mapping[str, Any], attempts: int = 0
) -> Any:
    return TaskResult(
        task=task,
        id=id,
        status=status,
        enqueued_at=None,
        started_at=None,
        finished_at=None,
        last_attempted_at=None,
        args=list(args),
        kwargs=dict(kwargs),
        backend=alias,
        errors=[],
        worker_ids=["batuta"] * attempts,  # Django uses the length of this list as the number of attempts
    )


def _set(result: Any, **values: object) -> None:
    """Set fields of a result object. The object is an instance of a frozen dataclass, so this function uses
    ``object.__setattr__``, as Django does.
    """
    for name, value in values.items():
        object.__setattr__(result, name, value)
