"""No text, number, file name, session or login code from Telegram reaches a log, whatever happens to the message."""

import io

from app.contexts.telegram.arquivos import arquivo_de
from app.contexts.telegram.tarefas import TELEGRAM_ACOES, TELEGRAM_HISTORICO, Acao
from batuta.logs import begin_logging
from tests.julia.telegram.escritorio import PHONE, open_office

CANARY = "canary-7731"


async def test_worker_logs_no_text_number_file_name_or_session(database_url: str) -> None:
    log = io.StringIO()
    async with open_office(database_url, log_level="DEBUG", log_format="json") as office:
        begin_logging(office.work.events, office.julia.settings, service="telegram", stream=log, zone=office.work.zone)
        conta = await office.account()
        _, person = await office.doctor()
        (session,) = office.mundo.sessoes
        await office.connect()
        office.mundo.says(person, office.usuarios[conta], f"{CANARY} recebida")
        await office.sync("SELECT 1 FROM telegram_entrada WHERE NOT propria")
        await office.reads_inbox()
        servico = office.telegram.servico
        await office.send(PHONE, f"{CANARY} enviada")
        file = arquivo_de(f"{CANARY}.pdf", "application/pdf", CANARY.encode(), f"{CANARY} arquivo")
        await office.send(PHONE, f"{CANARY} arquivo", arquivo=file)
        await servico.agir("conta-1", Acao.ENCAMINHAR, f"pessoa:{person}", 1, by="teste", para=PHONE)
        await servico.agir("conta-1", Acao.EDITAR, f"pessoa:{person}", 99, by="teste", texto=CANARY)
        await servico.ler_historico("conta-1", f"+{PHONE}", maximo=10)
        for queue in (TELEGRAM_ACOES.name, TELEGRAM_HISTORICO.name):
            await office.works(queue)
        await office.works()
        office.mundo.change({"dropped": 1.0})
        await office.rests()
        await office.send(PHONE, f"{CANARY} perdida")
        await office.works()
        office.mundo.restore()
        office.mundo.revoke(office.usuarios[conta])
        await office.works()
        await office.telegram.health.documento()
    said = log.getvalue()
    assert "telegram" in said
    assert [each for each in (CANARY, PHONE, session) if each in said] == []
