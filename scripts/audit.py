"""``python3 dev.py audit``: check the locked packages against known vulnerabilities, list licences, write an SBOM.

Nothing is downloaded. ``--advisories FILE`` names a file with OSV records as JSON: a list, or one record per line.
Without this option the command says that vulnerabilities were not checked. ``--sbom FILE`` names the file to which the
SBOM (CycloneDX) is written; the default is dist/sbom.json. The exit code is 1 if a locked version is affected.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, metadata
from pathlib import Path
from typing import Any

from packaging.version import InvalidVersion, Version

ROOT = Path(__file__).parents[1]
LOCKS = {"requirements.lock": "required", "requirements-dev.lock": "optional"}
_PINNED = re.compile(r"^([A-Za-z0-9._-]+)(?:\[[^\]]*\])?==([^\s;\\]+)", re.MULTILINE)
LONGEST_LICENCE = 60
UNKNOWN, NOT_HERE = "unknown", "not installed here"


@dataclass(frozen=True, slots=True, order=True)
class Package:
    name: str
    version: str
    scope: str  # "required" at run time, or "optional" if only for development


@dataclass(frozen=True, slots=True)
class Finding:
    package: Package
    advisory: str
    summary: str


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="dev.py audit", description=__doc__)
    parser.add_argument("--advisories", type=Path)
    parser.add_argument("--sbom", type=Path, default=ROOT / "dist" / "sbom.json")
    asked = parser.parse_args(arguments)
    try:
        advisories = None if asked.advisories is None else read_advisories(asked.advisories)
    except (OSError, ValueError):
        parser.error(f"{asked.advisories} has no OSV records: give a JSON list of records, or one record per line")
    packages = locked()
    for package in packages:
        print(f"{package.name} {package.version}: {licence_of(package.name)} ({package.scope})")
    asked.sbom.parent.mkdir(parents=True, exist_ok=True)
    asked.sbom.write_text(json.dumps(sbom(packages), indent=2) + "\n", encoding="utf-8")
    print(f"{len(packages)} packages; SBOM written to {asked.sbom}")
    if advisories is None:
        print("vulnerabilities were NOT checked: give OSV records of PyPI with --advisories FILE")
        return 0
    found = [each for advisory in advisories for each in affected(advisory, packages)]
    for each in found:
        print(f"AFFECTED {each.package.name} {each.package.version}: {each.advisory} {each.summary}")
    print(f"{len(found)} known vulnerabilities in the locked packages")
    return 1 if found else 0


def locked(folder: Path = ROOT) -> list[Package]:
    """Return the packages of both lock files. Packages in the first lock file are needed at run time."""
    found: dict[str, Package] = {}
    for file, scope in LOCKS.items():
        for name, version in _PINNED.findall((folder / file).read_text(encoding="utf-8")):
            found.setdefault(canonical(name), Package(canonical(name), version, scope))
    return sorted(found.values())


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def licence_of(name: str) -> str:
    """Return the licence that the installed package declares. If the package is not installed, because it is for
    another operating system, return NOT_HERE.
    """
    try:
        said = metadata(name)
    except PackageNotFoundError:
        return NOT_HERE
    if expression := said.get_all("License-Expression"):
        return str(expression[0])
    classes = [each for each in said.get_all("Classifier") or [] if each.startswith("License ::")]
    if classes:
        return " / ".join(each.rpartition(" :: ")[2] for each in classes)
    lines = "\n".join(said.get_all("License") or []).strip().splitlines()
    return lines[0][:LONGEST_LICENCE] if lines else UNKNOWN


def read_advisories(file: Path) -> list[Mapping[str, Any]]:
    text = file.read_text(encoding="utf-8").strip()
    is_list = text.startswith("[")
    records = json.loads(text) if is_list else [json.loads(line) for line in text.splitlines() if line.strip()]
    if not all(isinstance(each, dict) for each in records):
        raise ValueError("a record must be an object")
    return list(records)


def affected(advisory: Mapping[str, Any], packages: Sequence[Package]) -> Iterator[Finding]:
    if advisory.get("withdrawn"):
        return
    known = {package.name: package for package in packages}
    for each in advisory.get("affected", ()):
        about = each.get("package", {})
        package = known.get(canonical(str(about.get("name", ""))))
        if package is None or about.get("ecosystem") != "PyPI":
            continue
        if package.version in each.get("versions", ()) or any(
            in_range(package.version, span.get("events", ()))
            for span in each.get("ranges", ())
            if span.get("type") == "ECOSYSTEM"
        ):
            yield Finding(package, str(advisory.get("id")), str(advisory.get("summary", "")))


def in_range(version: str, events: Sequence[Mapping[str, str]]) -> bool:
    """Return whether the version is in the range of an OSV record: at or after the introduced version, before the fixed
    version, and not after the last affected version. If a version cannot be parsed, return True, so that a person
    checks the record.
    """
    try:
        ours, is_in = Version(version), False
        for event in events:
            if "introduced" in event:
                is_in |= event["introduced"] == "0" or ours >= Version(event["introduced"])
            elif "fixed" in event:
                is_in &= ours < Version(event["fixed"])
            elif "last_affected" in event:
                is_in &= ours <= Version(event["last_affected"])
    except InvalidVersion:
        return True  # the record is unclear, so a person must decide
    return is_in


def sbom(packages: Sequence[Package]) -> dict[str, Any]:
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.5",
        "version": 1,
        "metadata": {"component": {"type": "application", "name": "batuta"}},
        "components": [
            {
                "type": "library",
                "name": each.name,
                "version": each.version,
                "scope": each.scope,
                "purl": f"pkg:pypi/{each.name}@{each.version}",
                "licenses": [{"license": {"name": licence_of(each.name)}}],
            }
            for each in packages
        ],
    }


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
