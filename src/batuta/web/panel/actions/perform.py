"""Dashboard actions. A GET request shows what the action will do. A POST request performs the action and redirects to a
page that shows the result.
"""

import shlex
from collections.abc import Awaitable, Callable, Mapping
from typing import TypeAlias

from fastapi import APIRouter, Request
from fastapi.responses import JSONResponse, RedirectResponse, Response

from batuta.engine.screens import Action, ActionCall, ActionResult, FieldKind, Preview
from batuta.kernel.errors import ActionRefused, BatutaError, StoreUnavailable
from batuta.kernel.reasons import define
from batuta.kernel.spans import read_span
from batuta.kernel.storage.storable import is_writable
from batuta.web.auth import needs
from batuta.web.context import base_of, state_of
from batuta.web.forms import Form, read_form
from batuta.web.panel.frame import BACK, CHOSEN, caller_of, keep_result, show, words_of
from batuta.web.panel.page_route import is_browser
from batuta.web.panel.sign_in import own_address
from batuta.web.problems import Problem, page_texts

FIELD_MISSING = define("field_missing", "fill in the field “{field}”")
FIELD_TOO_LONG = define("field_too_long", "the field “{field}” has more than {most} characters: shorten it")
NO_NUMBER = define("field_no_number", "the field “{field}” is a whole number, as in 10")
NO_CHOICE = define("field_no_choice", "choose one of the values of the field “{field}”")
NO_SPAN = define("field_no_span", "write the field “{field}” as in 30m, 2h or 1d")
Handler: TypeAlias = Callable[[Request], Awaitable[Response]]


def add_routes(router: APIRouter, actions: Mapping[str, Action]) -> None:
    for action in actions.values():
        path, scope = f"/acoes/{action.name}", needs(action.scope)
        router.add_api_route(path, _showing(action), methods=["GET"], openapi_extra=scope)
        router.add_api_route(path, _performing(action), methods=["POST"], openapi_extra=scope)


def _showing(action: Action) -> Handler:
    async def show_form(request: Request) -> Response:
        call = _call(request, action, Form(request.query_params.multi_items()))
        return await _form_page(request, action, call, request.query_params.get(BACK, ""))

    return show_form


def _performing(action: Action) -> Handler:
    async def perform(request: Request) -> Response:
        form = await read_form(request)
        call = _call(request, action, form)
        try:
            _check(action, call)
            result = await _perform(request, action, call)
        except StoreUnavailable:
            raise
        except BatutaError as refused:
            return await _refuse(request, action, call, form.get(BACK), refused)
        state_of(request).counts.forget()
        state_of(request).live.refresh()
        follow = _show_secret if result.secret and is_browser(request) else _follow
        return follow(request, action, call, result, form.get(BACK))

    return perform


async def _perform(request: Request, action: Action, call: ActionCall) -> ActionResult:
    if not action.audits:
        state = state_of(request)
        await state.work.access.note(
            actor=call.caller,
            action=action.name,
            subject=action.subject(call),
            client=state.clients.address(request.scope),
            values=action.audit_values(call),
        )
    return await action.perform(call)


def _call(request: Request, action: Action, form: Form) -> ActionCall:
    known = {each.name: each for each in action.fields}
    values = {name: form.get(name).strip() for name in known if known[name].kind is not FieldKind.FILE}
    chosen = form.every(CHOSEN)
    if not all(map(is_writable, (*values.values(), *chosen))):
        raise Problem(400, "unwritable_parameter")
    return ActionCall(
        caller=caller_of(request).name,
        values=values,
        texts=page_texts(request),
        now=state_of(request).work.clock.now(),
        chosen=chosen,
        scopes=caller_of(request).scopes,
        files={name: content for name, content in form.files.items() if name in known},
        file_names=form.file_names,
    )


def _check(action: Action, call: ActionCall) -> None:
    """Raise ActionRefused if a field has an invalid value. The error names the first such field."""
    for each in action.fields:
        value = call.values.get(each.name, "")
        label = call.texts(each.label) if each.label else each.name
        has_value = bool(call.files.get(each.name)) if each.kind is FieldKind.FILE else bool(value)
        if each.required and not has_value:
            raise ActionRefused(why=FIELD_MISSING(field=label))
        if len(value) > each.longest:
            raise ActionRefused(why=FIELD_TOO_LONG(field=label, most=each.longest))
        if not value:
            continue
        if each.kind is FieldKind.NUMBER and not (value.isascii() and value.removeprefix("-").isdigit()):
            raise ActionRefused(why=NO_NUMBER(field=label))
        if each.kind is FieldKind.CHOICE and value not in each.choices:
            raise ActionRefused(why=NO_CHOICE(field=label))
        if each.kind is FieldKind.SPAN and read_span(value) is None:
            raise ActionRefused(why=NO_SPAN(field=label))


async def _form_page(
    request: Request, action: Action, call: ActionCall, back: str, refused: BatutaError | None = None
) -> Response:
    preview: Preview | None = None
    try:
        preview = await action.preview(call)
    except StoreUnavailable:
        raise
    except BatutaError as error:
        refused = refused or error
    values = {name: value or (preview.values.get(name, "") if preview else "") for name, value in call.values.items()}
    content = {
        "action": action,
        "title": call.texts(preview.title, **preview.facts) if preview and preview.title else call.texts(action.label),
        "preview": preview,
        "says": call.texts(preview.says, **preview.facts) if preview else "",
        "refused": None if refused is None else call.texts.error(refused),
        "values": values,
        "chosen": call.chosen,
        "back": own_address(back, base_of(request)),
        "command": _command(action, call),
    }
    status = 200 if refused is None else 422
    return show(request, "panel/action.html.j2", words_of(request), content, live=False, status=status)


async def _refuse(request: Request, action: Action, call: ActionCall, back: str, refused: BatutaError) -> Response:
    if not is_browser(request):
        return JSONResponse({"refused": call.texts.error(refused)}, 422)
    return await _form_page(request, action, call, back, refused)


def _follow(request: Request, action: Action, call: ActionCall, result: ActionResult, back: str) -> Response:
    text, command = call.texts(result.says, **result.facts), _command(action, call)
    base = base_of(request)
    to = own_address(back, base) if result.to is None else base + result.to
    document = {"done": text, "tone": result.tone.value, "command": command, "to": to}
    document |= {"secret": result.secret} if result.secret else {}
    # The page's script asks for JSON and opens the next page itself.
    is_script = request.headers.get("accept", "").startswith("application/json")
    response = JSONResponse(document) if is_script or not is_browser(request) else RedirectResponse(to, 303)
    if is_browser(request):
        keep_result(response, state_of(request), result.tone, text, command)
    return response


def _show_secret(request: Request, action: Action, call: ActionCall, result: ActionResult, back: str) -> Response:
    """Return a page with the secret that the action created, such as a new token. The response is not a redirect,
    because a redirect would have to store the secret in a cookie.
    """
    content = {
        "title": call.texts(action.label),
        "says": call.texts(result.says, **result.facts),
        "secret": result.secret,
        "back": own_address(back, base_of(request)),
        "command": _command(action, call),
    }
    return show(request, "panel/secret.html.j2", words_of(request), content, live=False)


def _command(action: Action, call: ActionCall) -> str:
    """Return the command line that does the same as the action, or an empty string if there is no such command. Each
    private value is replaced by an ellipsis.
    """
    if action.command is None:
        return ""
    private = {each.name for each in action.fields if each.is_private}
    shown = {name: "…" if name in private and value else value for name, value in call.values.items()}
    # For an empty required field, show the field's name, because the command line would refuse or record an empty
    # value.
    shown |= {
        each.name: call.texts(each.label).upper()
        for each in action.fields
        if each.required and each.label and not shown.get(each.name)
    }
    arguments = action.command({**shown, CHOSEN: " ".join(call.chosen)})
    return shlex.join(["batuta", *arguments]) if arguments else ""
