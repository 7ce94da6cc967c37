"""The only module that reads the environment. It loads no third-party library when it is imported, so that a command
can choose its language before the settings are loaded.
"""

import os
from collections.abc import Mapping
from pathlib import Path

from batuta.kernel.errors import InvalidSetting
from batuta.kernel.reasons import Reason
from batuta.texts import Language

ENV_FILE = Path(".env")  # relative to the working folder


def environment() -> Mapping[str, str]:
    """Return the process's environment. All other code receives it as a mapping."""
    return dict(os.environ)


def system_language(env: Mapping[str, str]) -> Language:
    """Return Portuguese if the system's locale for messages is Portuguese, otherwise English."""
    locale = next((env[name] for name in ("LC_ALL", "LC_MESSAGES", "LANG") if env.get(name)), "")
    return "pt-BR" if locale.lower().startswith("pt") else "en"


def in_file(env_file: Path | None) -> dict[str, str]:
    """Return the values of a ``.env`` file, or an empty mapping if the file does not exist. Raise InvalidSetting if a
    line is invalid.
    """
    if env_file is None or not env_file.is_file():
        return {}
    from dotenv.parser import parse_stream  # imported here, because most processes have no .env file

    try:
        with env_file.open(encoding="utf-8") as lines:
            bindings = list(parse_stream(lines))
    except (OSError, UnicodeDecodeError) as error:
        raise InvalidSetting(name=str(env_file), why=unreadable(env_file, error)) from None
    if wrong := [binding.original.line for binding in bindings if binding.error]:
        raise InvalidSetting(name=str(env_file), why=Reason("no_pair", "line {line} is not NAME=value", line=wrong[0]))
    return {binding.key: binding.value for binding in bindings if binding.key and binding.value}


def unreadable(file: Path, error: Exception) -> Reason:
    return Reason("unreadable", "{file} cannot be read ({kind})", file=file, kind=type(error).__name__)
