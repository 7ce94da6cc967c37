"""The engine's source contains no vocabulary of the applications built on it."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ENGINE = ROOT / "src" / "batuta"
APPLICATION = re.compile(
    r"chip|critico|julia|medic|supabase|telegram|evolution|executando|hora.atual|pilot|campan", re.IGNORECASE
)
# The engine masks credentials and names of people of any service or application, so these files name services.
MASKING = {"kernel/masking/credentials.py", "kernel/masking/fields.py"}
# A column and an address of the panel keep their Portuguese names; docs/decisions/0036 gives the reason.
NAMES_KEPT = {"stores/sql", "stores/backup", "web/panel"}


def lines_with(pattern: re.Pattern[str]) -> list[tuple[str, str]]:
    return [
        (file.relative_to(ENGINE).as_posix(), line)
        for file in sorted(ENGINE.rglob("*"))
        if file.is_file() and file.suffix in (".py", ".sql", ".toml", ".j2", ".js", ".css")
        for line in file.read_text(encoding="utf-8").splitlines()
        if pattern.search(line)
    ]


def test_engine_names_nothing_of_the_application() -> None:
    found = [(file, line) for file, line in lines_with(APPLICATION) if file not in MASKING]
    # `batuta doctor` shows its clock with this Portuguese label.
    assert [each for each in found if each[1] != 'time = "Hora atual {time} ({zone})"'] == []


def test_masking_module_names_services_and_people_only_to_mask_them() -> None:
    found = {file: line for file, line in lines_with(APPLICATION) if file in MASKING}
    assert set(found) == MASKING  # the list above has no unused entry
    assert not any(re.search("chip|julia|supabase|evolution", line, re.IGNORECASE) for line in found.values())


def test_category_of_a_job_has_one_name_in_python() -> None:
    found = [
        (file, line)
        for file, line in lines_with(re.compile("categoria"))
        if file.endswith(".py") and not any(file.startswith(folder) for folder in NAMES_KEPT)
    ]
    assert found == []
