"""Hospitals are removed if their name cannot be the name of a hospital. Rows that are in use or have been reviewed are
kept. The tests run on both databases.
"""

from datetime import timedelta

from app.contexts.comum.ids import id_de
from batuta.queue.outcome import Done
from batuta.receive.endpoints import JobCall
from tests.julia.grupos.bancada import Bancada, vaga


async def made(mesa: Bancada, nome: str, *, revisado: bool = False) -> str:
    """Insert an automatically created hospital with its name."""
    id, now = id_de("hospital", nome), mesa.clock.now()
    await mesa.write(
        "INSERT INTO hospitais (id, nome, criado_automaticamente, precisa_revisao, created_at)"
        " VALUES (:id, :nome, TRUE, :espera, :now)",
        id=id,
        nome=nome,
        espera=not revisado,
        now=now,
    )
    await mesa.write(
        "INSERT INTO hospitais_alias (hospital_id, alias, alias_normalizado, origem, created_at)"
        " VALUES (:id, :nome, lower(:nome), 'sistema_auto', :now)",
        id=id,
        nome=nome,
        now=now,
    )
    return id


async def test_impossible_names_are_removed_with_aliases_unless_used_or_reviewed(mesa: Bancada) -> None:
    gone = [await made(mesa, nome) for nome in ("inbox", "R$ 1.500 à vista", "19h às 7h", "pediatria")]
    await made(mesa, "Hospital Fictício")
    await made(mesa, "amazon", revisado=True)
    needed = await made(mesa, "a definir")
    await mesa.dizem(vaga("Hospital Inventado"))
    await mesa.trabalha()
    await mesa.write("UPDATE vagas_grupo SET hospital_id = :id", id=needed)
    now = mesa.clock.now()
    call = JobCall(key="k", params={}, started_at=now, deadline=now + timedelta(minutes=5))
    answer = await mesa.handlers["limpeza-hospitais"](call)
    assert isinstance(answer, Done)
    assert (answer.items, answer.result) == (4, {"candidatos": 5, "deletados": 4})
    left = [row["nome"] for row in await mesa.rows("SELECT nome FROM hospitais ORDER BY nome")]
    assert left == ["Hospital Fictício", "Hospital Inventado", "a definir", "amazon"]
    aliases = await mesa.rows("SELECT hospital_id FROM hospitais_alias")
    assert not {row["hospital_id"] for row in aliases} & set(gone)
    noted = await mesa.rows("SELECT actor, action, subject FROM audit_log")
    assert {row["subject"] for row in noted} == {f"hospital:{id}" for id in gone}
    again = await mesa.handlers["limpeza-hospitais"](call)
    assert isinstance(again, Done)
    assert again.items == 0
