"""Tasks in a Django project. The test assigns its engine to ``work``."""

from django_tasks import task
from django_tasks.base import TaskContext

from batuta import Batuta

work: Batuta | None = None


@task()
def add(a: int, b: int) -> int:
    return a + b


@task(takes_context=True)
async def count_attempts(context: TaskContext) -> int:
    return context.attempt


@task(queue_name="mail")
def fail() -> None:
    raise ValueError("the phone of Ana is 11 91234-5678")
