"""``/grupos/nomes``: show which hospitals and specialities have a given name and who added the name, and
remove a name.
"""

from dataclasses import asdict
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Query, Request
from pydantic import BaseModel, ConfigDict, Field

from app.contexts.nomes.ensino import Ensino, NomeDesconhecido, NomeDeVarios
from app.web.refusals import as_problems, caller_of
from app.web.routes.grupos import NAME
from batuta.extension import Scope
from batuta.web import AuthoriseFirst, disclose, needs


class Esquecimento(BaseModel):
    """A request to remove a name. ``id`` is the hospital or speciality; it is required if several have this name."""

    model_config = ConfigDict(extra="forbid")
    nome: Annotated[str, Field(max_length=200, pattern=NAME)]
    id: UUID | None = None


def router(ensino: Ensino) -> APIRouter:
    routes = APIRouter(prefix="/grupos/nomes", tags=["grupos"], route_class=AuthoriseFirst)

    @routes.get("", operation_id="list_nomes", openapi_extra=needs(Scope.PII))
    async def owners(request: Request, nome: Annotated[str, Query(max_length=200, pattern=NAME)]) -> dict[str, Any]:
        """List the hospitals and specialities that have this name, and the origin of the name."""
        found = await ensino.de_quem(nome)
        await disclose(request, len(found))
        return {"nomes": [asdict(each) for each in found]}

    @routes.post(
        "/esquecer",
        operation_id="forget_nome",
        responses={
            404: {"description": "no hospital or speciality has this name"},
            409: {"description": "several hospitals or specialities have this name"},
        },
    )
    async def forget(request: Request, what: Esquecimento) -> dict[str, Any]:
        """Remove a name from a hospital or speciality. All processes stop using it within five seconds. Stored
        vacancies do not change.
        """
        id = None if what.id is None else str(what.id)
        with as_problems(request, {NomeDesconhecido: (404, "nome_unknown"), NomeDeVarios: (409, "nome_of_several")}):
            return asdict(await ensino.esquecer(what.nome, por=caller_of(request), id=id))

    return routes
