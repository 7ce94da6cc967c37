"""The audit that reports locked packages with known vulnerabilities. The tests run the audit without network access."""

import json
from pathlib import Path
from typing import Any

import pytest

from scripts import audit


def advisory(name: str, events: list[dict[str, str]], **more: Any) -> dict[str, Any]:
    ranges = [{"type": "ECOSYSTEM", "events": events}]
    about = {"package": {"ecosystem": "PyPI", "name": name}, "ranges": ranges}
    return {"id": "OSV-INVENTED-1", "summary": "an invented fault", "affected": [about], **more}


def run(tmp_path: Path, *advisories: dict[str, Any], lines: bool = False) -> int:
    file = tmp_path / "advisories.json"
    file.write_text("\n".join(map(json.dumps, advisories)) if lines else json.dumps(advisories))
    return audit.main(["--advisories", str(file), "--sbom", str(tmp_path / "sbom.json")])


@pytest.mark.parametrize("lines", [True, False])
def test_affected_version_is_named_and_fails(tmp_path: Path, capsys: pytest.CaptureFixture[str], lines: bool) -> None:
    assert run(tmp_path, advisory("FastAPI", [{"introduced": "0"}]), lines=lines) == 1
    assert "AFFECTED fastapi" in capsys.readouterr().out


def test_fixed_withdrawn_and_foreign_advisories_are_passed_over(tmp_path: Path) -> None:
    fixed = advisory("fastapi", [{"introduced": "0"}, {"fixed": "0.1"}])
    withdrawn = advisory("fastapi", [{"introduced": "0"}], withdrawn="2026-01-01T00:00:00Z")
    other = advisory("package-that-is-not-locked", [{"introduced": "0"}])
    assert run(tmp_path, fixed, withdrawn, other) == 0


def test_missing_advisories_are_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert audit.main(["--sbom", str(tmp_path / "sbom.json")]) == 0
    assert "vulnerabilities were NOT checked" in capsys.readouterr().out


def test_sbom_names_every_package_of_the_locks_and_run_time_packages_have_a_licence(tmp_path: Path) -> None:
    run(tmp_path)
    components = json.loads((tmp_path / "sbom.json").read_text())["components"]
    assert {(each["name"], each["version"]) for each in components} == {(p.name, p.version) for p in audit.locked()}
    assert len(components) > 50
    required = [each for each in components if each["scope"] == "required"]
    unknown = [each["name"] for each in required if each["licenses"][0]["license"]["name"] == audit.UNKNOWN]
    assert unknown == []


@pytest.mark.parametrize(
    ("version", "events", "inside"),
    [
        ("1.5", [{"introduced": "1.0"}, {"fixed": "1.6"}], True),
        ("1.6", [{"introduced": "1.0"}, {"fixed": "1.6"}], False),
        ("2.1", [{"introduced": "1.0"}, {"fixed": "1.6"}, {"introduced": "2.0"}], True),
        ("0.9", [{"introduced": "1.0"}], False),
        ("1.5", [{"introduced": "0"}, {"last_affected": "1.4"}], False),
    ],
)
def test_range_of_an_advisory(version: str, events: list[dict[str, str]], inside: bool) -> None:
    assert audit.in_range(version, events) is inside


@pytest.mark.parametrize("content", [None, "not JSON", '["not a record"]'])
def test_unusable_advisories_are_an_error_with_the_next_step(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], content: str | None
) -> None:
    file = tmp_path / "advisories.json"
    if content is not None:
        file.write_text(content)
    with pytest.raises(SystemExit, match="2"):
        audit.main(["--sbom", str(tmp_path / "sbom.json"), "--advisories", str(file)])
    assert f"{file} has no OSV records" in capsys.readouterr().err
