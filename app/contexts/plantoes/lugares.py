"""Find the hospital that an operator names. An unknown name creates no hospital, because it may be a typing error."""

from app.contexts.leitura_grupos.api import chave
from app.contexts.nomes.api import Nomes, achar, busca
from app.contexts.plantoes.model import HospitalDesconhecido, HospitalDeVarios, HospitalParecido, NovaVaga

NEAR = 60.0


def achar_hospital(nova: NovaVaga, names: Nomes) -> str:
    """Return the id of the hospital that an operator names. Raises HospitalDesconhecido if no hospital has the name,
    HospitalParecido if similar names exist, and HospitalDeVarios if several cities have a hospital with this name.
    """
    found = achar(nova.hospital, nova.cidade, nova.uf, None, names)
    if found.como == "ambiguo":
        towns = {_place(each.cidade, each.uf) for each in names.hospitais.get(busca(nova.hospital), ())}
        raise HospitalDeVarios(cidades=", ".join(sorted(towns - {""})))
    if found.id is None:
        near = ", ".join(_find_near(nova.hospital, names))
        raise HospitalParecido(perto=near) if near else HospitalDesconhecido
    return found.id


def _find_near(nome: str, names: Nomes) -> list[str]:
    from rapidfuzz import fuzz, process  # takes half a megabyte, which most processes never need

    known = sorted({each.nome for some in names.hospitais.values() for each in some})
    found = process.extract(nome, known, processor=chave, scorer=fuzz.WRatio, score_cutoff=NEAR, limit=3)
    return [each for each, _, _ in found]


def _place(cidade: str | None, uf: str | None) -> str:
    return "/".join(part for part in (cidade, uf) if part)
