"""``/handoffs/confirmar``: the page behind a confirmation link. GET shows the vacancy; POST stores the decision.

The signed token is the proof, so the page needs no sign-in. GET changes nothing, because messengers load links to show
a preview. The page has no personal data. The request log contains only the path, without the token.
"""

from base64 import b64encode
from hashlib import sha256
from html import escape
from typing import Final
from urllib.parse import parse_qsl

from fastapi import APIRouter, Query, Request
from fastapi.responses import HTMLResponse

from app.contexts.handoffs.links import PATH
from app.contexts.handoffs.model import ABERTOS, LinkRecusado, Status
from app.contexts.handoffs.service import Handoffs
from app.contexts.plantoes.api import fatos_da_vaga
from batuta.web import AuthoriseFirst, refuse_above_limit

CONFIRMAR, RECUSAR = "confirmar", "recusar"
MOST_FIELDS: Final = 5
STYLE: Final = (
    "body{font:18px/1.5 sans-serif;max-width:32em;margin:2em auto;padding:0 1em}"
    "button{font:inherit;padding:.6em 1.2em;margin:.3em .6em .3em 0}p.fatos{white-space:pre-line}"
)
HEADERS: Final = {
    "Content-Security-Policy": (
        f"default-src 'none'; style-src 'sha256-{b64encode(sha256(STYLE.encode()).digest()).decode()}';"
        " form-action 'self'; frame-ancestors 'none'; base-uri 'none'"
    ),
    "X-Robots-Tag": "noindex",
}
PAGE: Final = (
    '<!doctype html><html lang="pt-BR"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">'
    "<title>Confirmação de vaga</title><style>{style}</style></head><body><h1>Confirmação de vaga</h1>{body}</body></html>"
)
PERGUNTA: Final = (
    '<p>Um médico quer esta vaga que você publicou:</p><p class="fatos">{fatos}</p><p>A vaga pode ficar com ele?</p>'
    '<form method="post" action="{path}"><input type="hidden" name="token" value="{token}">'
    '<button name="decisao" value="confirmar">Confirmo</button>'
    '<button name="decisao" value="recusar">Não confirmo</button></form>'
)
ENCERRADO: Final = {
    Status.CONFIRMED: "Obrigada! A vaga foi confirmada, e o médico será avisado.",
    Status.NOT_CONFIRMED: "Obrigada por avisar. A vaga não ficou com este médico, e ele será avisado.",
    Status.EXPIRED: "O prazo para confirmar esta vaga terminou, e o médico foi liberado.",
}
RECUSADO: Final = (
    "Este link não vale mais: ele já foi usado, ou o prazo terminou. "
    "Para mudar a resposta, escreva para a Julia no WhatsApp."
)


def router(handoffs: Handoffs) -> APIRouter:
    routes = APIRouter(tags=["handoffs"], include_in_schema=False, route_class=AuthoriseFirst)

    @routes.get(PATH)
    async def show(request: Request, token: str = Query(default="", max_length=500)) -> HTMLResponse:
        try:
            vista = await handoffs.ver_por_link(token)
        except LinkRecusado:
            return _refuse(request)
        status = Status(vista.handoff["status"])
        if status not in ABERTOS:
            return _page(f"<p>{ENCERRADO[status]}</p>")
        return _page(PERGUNTA.format(fatos=escape(fatos_da_vaga(vista.vaga)), path=PATH, token=escape(token)))

    @routes.post(PATH)
    async def decide(request: Request) -> HTMLResponse:
        fields = await _fields(request)
        if (decisao := fields.get("decisao")) not in (CONFIRMAR, RECUSAR):
            return _refuse(request)
        try:
            done = await handoffs.decidir_por_link(fields.get("token", ""), confirma=decisao == CONFIRMAR)
        except LinkRecusado:
            return _refuse(request)
        return _page(f"<p>{ENCERRADO[done.status]}</p>")

    return routes


async def _fields(request: Request) -> dict[str, str]:
    try:
        return dict(parse_qsl((await request.body()).decode(), max_num_fields=MOST_FIELDS))
    except ValueError:
        return {}


def _refuse(request: Request) -> HTMLResponse:
    """Refuse a confirmation link, and count the request as an attempt to guess a token."""
    refuse_above_limit(request)
    request.state.refusal_cost = 1
    return _page(f"<p>{RECUSADO}</p>", 404)


def _page(body: str, status: int = 200) -> HTMLResponse:
    return HTMLResponse(PAGE.format(style=STYLE, body=body), status_code=status, headers=dict(HEADERS))
