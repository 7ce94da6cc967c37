"""Messages from a blocked author are not read until an operator lifts the block. The tests run on both databases."""

import pytest

from app.contexts.grupos.autores import AutorInexistente, SemAutor
from app.contexts.vagas.revisao import VagaInexistente
from tests.julia.grupos.bancada import Bancada, vaga

UNUSED_ID = "00000000-0000-0000-0000-000000000000"
OUTRA = "5511900000088@s.whatsapp.net"


async def test_messages_of_a_blocked_author_are_discarded_with_the_reason(mesa: Bancada) -> None:
    await mesa.dizem("plantão\n" + vaga("Vila Inventada") + "\n" + vaga("Vila Sonhada"))
    await mesa.trabalha()
    first, second = await mesa.rows("SELECT id, status FROM vagas_grupo")
    done = await mesa.groups.autores.bloquear(first["id"], por="gestora")
    assert (done.bloqueado, done.rejeitadas) == (True, 2)
    row = await mesa.one("SELECT status, motivo_status, revisada_por FROM vagas_grupo WHERE id = :id", id=second["id"])
    assert tuple(row.values()) == ("rejeitada", "autor_bloqueado", "gestora")
    noise = await mesa.dizem(vaga())
    other = await mesa.dizem(vaga(dia="2026-03-21"), autor=OUTRA)
    await mesa.trabalha()
    said = {row["message_id"]: row for row in await mesa.rows("SELECT * FROM mensagens_grupo")}
    assert (said[noise]["status"], said[noise]["motivo_descarte"]) == ("descartada", "autor_bloqueado")
    assert said[other]["status"] == "processada"
    noted = await mesa.one("SELECT actor, action, subject, after FROM audit_log")
    assert tuple(noted.values()) == (
        "gestora", "contato.bloquear", f"contato:{done.id}", {"vaga_grupo": first["id"], "rejeitadas": 2},
    )  # fmt: skip


async def test_block_is_idempotent_and_lifting_it_reads_the_author_again(mesa: Bancada) -> None:
    await mesa.dizem(vaga())
    await mesa.trabalha()
    id, autores = (await mesa.one("SELECT id FROM vagas_grupo"))["id"], mesa.groups.autores
    done = await autores.bloquear(id, por="gestora")
    assert (await autores.bloquear(id, por="gestora")) == done
    assert (await mesa.one("SELECT status FROM vagas"))["status"] == "aberta"
    await autores.liberar(done.id, por="gestora")
    await mesa.dizem(vaga(dia="2026-03-25"))
    await mesa.trabalha()
    assert len(await mesa.rows("SELECT id FROM vagas")) == 2
    actions = [row["action"] for row in await mesa.rows("SELECT action FROM audit_log ORDER BY id")]
    assert actions == ["contato.bloquear", "contato.liberar"]


PHONE, DEVICE, LID = "5511980000077@s.whatsapp.net", "5511980000077:12@s.whatsapp.net", "98765@lid"
WITHOUT_NINTH = "551180000077@s.whatsapp.net"


async def unread(mesa: Bancada, ids: list[str]) -> list[bool]:
    rows = {
        row["message_id"]: row for row in await mesa.rows("SELECT message_id, motivo_descarte FROM mensagens_grupo")
    }
    return [rows[id]["motivo_descarte"] == "autor_bloqueado" for id in ids]


@pytest.mark.parametrize(("first", "of"), [(PHONE, None), (DEVICE, None), (LID, PHONE), (LID, DEVICE), (PHONE, LID)])
async def test_block_covers_every_address_of_the_author(mesa: Bancada, first: str, of: str | None) -> None:
    await mesa.dizem(vaga(), autor=first, outro=of)
    await mesa.trabalha()
    done = await mesa.groups.autores.bloquear((await mesa.one("SELECT id FROM vagas_grupo"))["id"], por="gestora")
    other = ((PHONE, None), (DEVICE, None), (WITHOUT_NINTH, None), (LID, PHONE), (LID, None), (PHONE, LID))
    said = [await mesa.dizem(vaga(), autor=who, outro=alias) for who, alias in other]
    assert await unread(mesa, said) == [True] * len(said)
    await mesa.groups.autores.liberar(done.id, por="gestora")
    said = [await mesa.dizem(vaga(), autor=who, outro=alias) for who, alias in other]
    assert await unread(mesa, [*said, await mesa.dizem(vaga(), autor=OUTRA)]) == [False] * (len(said) + 1)


async def test_block_rejects_vagas_posted_under_another_address(mesa: Bancada) -> None:
    """A block also rejects vacancies that the author posted under a hidden address, even if it became known only later
    that the address is the author's.
    """
    await mesa.dizem("plantão\n" + vaga("Vila Inventada"), autor=LID)
    await mesa.dizem("plantão\n" + vaga("Vila Sonhada"), autor=PHONE)
    await mesa.trabalha()
    await mesa.dizem("bom dia a todos", autor=LID, outro=PHONE)
    rows = await mesa.rows("SELECT id, hospital_raw FROM vagas_grupo")
    id = next(row["id"] for row in rows if row["hospital_raw"] == "Vila Sonhada")
    assert (await mesa.groups.autores.bloquear(id, por="gestora")).rejeitadas == 2
    assert await unread(mesa, [await mesa.dizem(vaga(), autor=LID)]) == [True]


async def test_person_is_one_author_whichever_address_they_use(mesa: Bancada) -> None:
    for who, alias in ((PHONE, None), (DEVICE, None), (LID, PHONE), (LID, None)):
        await mesa.dizem("bom dia a todos", autor=who, outro=alias)
    assert len({row["contato_id"] for row in await mesa.rows("SELECT contato_id FROM mensagens_grupo")}) == 1


async def test_unknown_author_cannot_be_blocked(mesa: Bancada) -> None:
    autores = mesa.groups.autores
    with pytest.raises(VagaInexistente):
        await autores.bloquear(UNUSED_ID, por="gestora")
    with pytest.raises(AutorInexistente):
        await autores.liberar(UNUSED_ID, por="gestora")
    await mesa.dizem(vaga())
    await mesa.trabalha()
    await mesa.write("UPDATE vagas_grupo SET contato_responsavel_id = NULL")
    with pytest.raises(SemAutor):
        await autores.bloquear((await mesa.one("SELECT id FROM vagas_grupo"))["id"], por="gestora")
