"""An invalid job is rejected when it is declared. The error is one sentence, which names the job and says how to
correct it.
"""

from datetime import timedelta
from pathlib import Path

import pytest

from batuta import Batuta
from batuta.engine.extension import Extension
from batuta.kernel.errors import ConfigError, InvalidJob, InvalidSetting, UnknownWord


@pytest.fixture
def work(tmp_path: Path) -> Batuta:
    return Batuta(f"sqlite:///{tmp_path}/work.db")


async def nothing() -> None: ...


@pytest.mark.parametrize(
    ("schedule", "options", "said"),
    [
        ("61 * * * *", {}, "job 'teste' cannot be scheduled: '61 * * * *' is not a schedule: '61' is not a minute"),
        ("0 0 30 2 *", {}, "would never fire"),
        ("* * * * *", {"timeout": -1}, "its timeout must be positive"),
        ("* * * * *", {"catch_up": "sometimes"}, "its catch_up is 'sometimes', but must be skip | latest | all"),
        ("* * * * *", {"overlap": "maybe"}, "its overlap is 'maybe', but must be skip | allow"),
        ("* * * * *", {"window": "manha"}, "there is no window 'manha'"),
        ("* * * * *", {"category": "Relatório"}, "'Relatório' is not a category"),
    ],
)
def test_invalid_job_is_refused_by_name(work: Batuta, schedule: str, options: dict[str, object], said: str) -> None:
    with pytest.raises(InvalidJob) as refused:
        work.job(schedule, name="teste", **options)(nothing)  # type: ignore[arg-type]
    assert said in str(refused.value)
    assert str(refused.value).startswith("job 'teste' cannot be scheduled: ")
    assert str(refused.value).endswith("Correct it where it is declared and start again")


@pytest.mark.parametrize(
    ("options", "most"),
    [
        *(({"timeout": wrong}, "1 d") for wrong in (float("inf"), float("nan"), 1e12, 86401, "5", None, -1, 0)),
        *(({"sla": wrong}, "3653 d") for wrong in (timedelta.max, timedelta(days=4000), timedelta.min, float("inf"))),
        *(({"max_age": wrong}, "366 d") for wrong in (timedelta.max, timedelta(days=367), timedelta(0))),
    ],
)
def test_duration_out_of_range_is_refused_in_one_sentence(work: Batuta, options: dict[str, object], most: str) -> None:
    (what,) = options
    with pytest.raises(InvalidJob) as refused:
        work.job("* * * * *", name="teste", **options)(nothing)  # type: ignore[arg-type]
    assert f"its {what} must be positive and at most {most}. Correct it" in str(refused.value)


def test_durations_in_range_are_accepted(work: Batuta) -> None:
    work.job("0 0 29 2 *", name="a", timeout=86400, sla=timedelta(days=3650), max_age=timedelta(days=366))(nothing)
    work.job("* * * * *", name="b", timeout=0.5, sla=60, max_age=90)(nothing)
    assert {job.name: job.timeout for job in work.registry} == {"a": timedelta(days=1), "b": timedelta(seconds=0.5)}


def test_two_jobs_with_the_same_name_are_refused(work: Batuta) -> None:
    work.job("* * * * *")(nothing)
    with pytest.raises(InvalidJob, match="another job has this name"):
        work.job("0 * * * *")(nothing)


def test_name_that_does_not_fit_into_a_row_or_an_address_is_refused(work: Batuta) -> None:
    with pytest.raises(InvalidJob, match="lower-case letters"):
        work.job("* * * * *", name="Meu Job")(nothing)


def test_invalid_address_is_refused(work: Batuta) -> None:
    with pytest.raises(InvalidJob, match="'localhost:8000' is not an address"):
        work.http_job("teste", "* * * * *", "localhost:8000")


def test_unknown_zone_is_refused_with_an_example(tmp_path: Path) -> None:
    for name in ("America/Sao_Paolo", "../etc/passwd", ""):
        with pytest.raises(InvalidSetting, match="America/Sao_Paulo"):
            Batuta(f"sqlite:///{tmp_path}/work.db", timezone=name)


def test_unknown_profile_is_refused_with_the_nearest_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownWord, match="no profile 'janela': did you mean janelas"):
        Batuta(
            f"sqlite:///{tmp_path}/work.db",
            extension=Extension(profiles=["continuo", "janelas"], first_profile="janela"),
        )
    assert issubclass(InvalidJob, ConfigError)
