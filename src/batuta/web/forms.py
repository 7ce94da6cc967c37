"""The dashboard's forms: fields, repeated fields and uploaded files."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import field
from email.message import Message
from urllib.parse import parse_qsl

from fastapi import Request

from batuta.kernel.values import dataclass
from batuta.web.problems import Problem

URLENCODED, MULTIPART = "application/x-www-form-urlencoded", "multipart/form-data"
MOST_FIELDS = 250
_NAMED = re.compile(rb'(?i)^content-disposition:[^\r\n]*?\bname="([^"\r\n]*)"', re.MULTILINE)
_FILE = re.compile(rb'(?i)^content-disposition:[^\r\n]*?\bfilename="([^"\r\n]*)', re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Form:
    fields: Sequence[tuple[str, str]] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    file_names: Mapping[str, str] = field(default_factory=dict)

    def get(self, name: str) -> str:
        """Return a field's last value, or an empty string."""
        return next((value for each, value in reversed(self.fields) if each == name), "")

    def every(self, name: str) -> tuple[str, ...]:
        return tuple(value for each, value in self.fields if each == name and value)


async def read_form(request: Request) -> Form:
    """Return the form in a request's body. If the body has any other content type, return an empty form."""
    message = Message()
    message["content-type"] = request.headers.get("content-type", "")
    try:
        match message.get_content_type():
            case str(kind) if kind == URLENCODED:
                text = (await request.body()).decode()
                return Form(parse_qsl(text, keep_blank_values=True, max_num_fields=MOST_FIELDS))
            case str(kind) if kind == MULTIPART:
                return _multipart(await request.body(), (message.get_boundary() or "").encode())
    except ValueError:  # the form is not UTF-8, or has too many fields
        raise Problem(400, "unreadable_form") from None
    return Form()


def _multipart(body: bytes, boundary: bytes) -> Form:
    if not boundary:
        raise ValueError(boundary)
    fields: list[tuple[str, str]] = []
    files: dict[str, bytes] = {}
    file_names: dict[str, str] = {}
    for part in (b"\r\n" + body).split(b"\r\n--" + boundary)[1:-1]:
        head, blank, content = part.removeprefix(b"\r\n").partition(b"\r\n\r\n")
        named = _NAMED.search(head)
        if named is None or not blank or len(fields) + len(files) >= MOST_FIELDS:
            raise ValueError(head)
        name = named[1].decode()
        if (file := _FILE.search(head)) is not None:
            files[name], file_names[name] = content, file[1].decode()
        else:
            fields.append((name, content.decode()))
    return Form(fields, files, file_names)
