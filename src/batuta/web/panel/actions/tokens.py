"""The tokens page, on which administrators create, rotate and revoke tokens. A secret is shown once and never
stored.
"""

import secrets
from collections.abc import Iterator, Mapping
from datetime import datetime

from fastapi import Request
from fastapi.responses import HTMLResponse

from batuta.access import Scope, Token, UserRole, mint, mint_successor
from batuta.engine.batuta import Batuta
from batuta.engine.screens import Action, ActionCall, ActionResult, Field, FieldKind, Preview, Tone
from batuta.kernel.errors import ActionRefused
from batuta.kernel.reasons import define
from batuta.kernel.spans import read_span
from batuta.web.context import state_of
from batuta.web.panel.frame import show, words_of

TOKEN_ENDED = define("token_ended", "this token does not exist, has expired or is revoked: open the Tokens page again")
TOKEN_BEYOND = define(
    "token_beyond", "a new token cannot have scopes that yours lacks: {scopes}; ask a person whose token has them"
)
EXPIRES_AFTER = "90d"  # suggested lifetime of a new token
OVERLAP = "1d"  # suggested time for which a rotated token stays valid
METRICS = "metrics"  # the only choice of the field papel that is not a role
ACTIVE, EXPIRED, REVOKED = "active", "expired", "revoked"
_TONES = {ACTIVE: Tone.OK, EXPIRED: Tone.DEGRADED, REVOKED: Tone.FAILING}
_TOKEN = Field(name="token", kind=FieldKind.HIDDEN, required=True)
_FIELDS = (
    Field(name="nome", label="panel.field.token_name", required=True, hint="panel.field.token_name_hint"),
    Field(
        name="papel",
        label="panel.field.token_role",
        kind=FieldKind.CHOICE,
        required=True,
        choices={name: f"panel.token_role.{name}" for name in (*UserRole, METRICS)},
    ),
    Field(
        name="dados",
        label="panel.field.token_pii",
        kind=FieldKind.CHOICE,
        choices={"": "panel.no", "sim": "panel.yes"},
    ),
    Field(
        name="prazo",
        label="panel.field.token_span",
        kind=FieldKind.SPAN,
        hint="panel.field.token_span_hint",
    ),
    Field(name="redes", label="panel.field.token_networks", hint="panel.field.token_networks_hint"),
)


async def tokens(request: Request) -> HTMLResponse:
    work, words = state_of(request).work, words_of(request)
    rows = [(token, state_of_token(token, words.now), role_of(token)) for token in await work.tokens.all()]
    rows.sort(key=lambda row: row[1] != ACTIVE)  # valid tokens first; within each group the newest first
    return show(request, "panel/tokens.html.j2", words, {"rows": rows, "tones": _TONES, "active": ACTIVE}, live=True)


def state_of_token(token: Token, now: datetime) -> str:
    if token.revoked_at is not None:
        return REVOKED
    return ACTIVE if token.is_valid(now) else EXPIRED


def role_of(token: Token) -> UserRole | None:
    """Return the role whose scopes are exactly the token's scopes, apart from ``pii``. Return None if there is no such
    role.
    """
    return next((role for role in UserRole if role.scopes == token.scopes - {Scope.PII}), None)


class TokenActions:
    def __init__(self, work: Batuta) -> None:
        self._work = work

    def actions(self) -> Iterator[Action]:
        yield Action(
            name="token.create",
            label="panel.act.token_create",
            preview=self._preview_create,
            perform=self._create,
            fields=_FIELDS,
            scope=Scope.TOKENS,
            command=_create_command,
            audits=True,
        )
        yield Action(
            name="token.rotate",
            label="panel.act.token_rotate",
            preview=self._preview_rotate,
            perform=self._rotate,
            fields=[
                _TOKEN,
                Field(
                    name="prazo",
                    label="panel.field.token_overlap",
                    kind=FieldKind.SPAN,
                    required=True,
                    hint="panel.field.token_overlap_hint",
                ),
            ],
            scope=Scope.TOKENS,
            command=lambda values: ["token", "rotate", values["token"], "--for", values["prazo"] or OVERLAP],
            audits=True,
        )
        yield Action(
            name="token.revoke",
            label="panel.act.token_revoke",
            preview=self._preview_revoke,
            perform=self._revoke,
            fields=[_TOKEN],
            scope=Scope.TOKENS,
            command=lambda values: ["token", "revoke", values["token"]],
            tone=Tone.FAILING,
            audits=True,
        )

    async def _preview_create(self, call: ActionCall) -> Preview:
        return Preview(says="panel.will.token_create", values={"prazo": EXPIRES_AFTER})

    async def _create(self, call: ActionCall) -> ActionResult:
        scopes, span = _scopes(call.values), read_span(call.values["prazo"])
        _refuse_more(scopes, call)
        token, text = mint(
            call.values["nome"],
            scopes,
            by=call.caller,
            now=call.now,
            chance=secrets.token_hex,
            expires_at=None if span is None else call.now + span,
            networks=_networks(call.values),
        )
        await self._work.tokens.keep(token)
        return ActionResult(says="panel.done.token_create", facts={"name": token.name}, secret=text)

    async def _preview_rotate(self, call: ActionCall) -> Preview:
        token = await self._find(call)
        _refuse_more(token.scopes, call)
        return Preview(says="panel.will.token_rotate", facts={"name": token.name}, values={"prazo": OVERLAP})

    async def _rotate(self, call: ActionCall) -> ActionResult:
        old, span = await self._find(call), read_span(call.values["prazo"])
        _refuse_more(old.scopes, call)
        new, text = mint_successor(old, by=call.caller, now=call.now, chance=secrets.token_hex)
        until = call.now if span is None else call.now + span
        await self._work.tokens.rotate(old, new, until=until)
        return ActionResult(says="panel.done.token_rotate", facts={"name": new.name}, secret=text)

    async def _preview_revoke(self, call: ActionCall) -> Preview:
        token = await self._find(call)
        return Preview(says="panel.will.token_revoke", facts={"name": token.name})

    async def _revoke(self, call: ActionCall) -> ActionResult:
        token = await self._find(call)
        if not await self._work.tokens.revoke(token.id, by=call.caller, now=call.now):
            raise ActionRefused(why=TOKEN_ENDED())
        return ActionResult(says="panel.done.token_revoke", facts={"name": token.name}, tone=Tone.DEGRADED)

    async def _find(self, call: ActionCall) -> Token:
        """Return the valid token that an action's form names."""
        found = await self._work.tokens.find(call.values["token"])
        if found is None or not found.is_valid(call.now):
            raise ActionRefused(why=TOKEN_ENDED())
        return found


def _scopes(values: Mapping[str, str]) -> frozenset[Scope]:
    role = values["papel"]
    chosen = frozenset({Scope.METRICS}) if role == METRICS else UserRole(role).scopes
    return chosen | ({Scope.PII} if values["dados"] else frozenset())


def _refuse_more(scopes: frozenset[Scope], call: ActionCall) -> None:
    """Raise ActionRefused if the token would have scopes that the caller lacks. Every caller may grant ``metrics``,
    which gives access to no personal data and permits no change.
    """
    if missing := scopes - call.scopes - {Scope.METRICS}:
        raise ActionRefused(why=TOKEN_BEYOND(scopes=", ".join(sorted(missing))))


def _networks(values: Mapping[str, str]) -> list[str]:
    return values["redes"].replace(",", " ").split()


def _create_command(values: Mapping[str, str]) -> list[str]:
    role = values["papel"]
    options = ["--scope", role] if role == METRICS else ["--role", role]
    options += ["--scope", Scope.PII.value] if values["dados"] else []
    options += ["--for", values["prazo"]] if values["prazo"] else []
    networks = [part for each in _networks(values) for part in ("--network", each)]
    return ["token", "create", "--name", values["nome"], *options, *networks]
