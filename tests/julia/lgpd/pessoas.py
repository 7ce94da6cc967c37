"""Fictitious people whose data appear in every Julia table, for tests of export and erasure."""

from dataclasses import dataclass
from typing import Any

from app.composition.julia import julia_of
from batuta.engine.batuta import Batuta
from batuta.stores.sql.database import AsJson
from tests.julia.tables import rows, write

TABLES = {
    "sqlite": "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite_%'",
    "postgres": "SELECT tablename AS name FROM pg_tables WHERE schemaname = current_schema()",
}


@dataclass(frozen=True, slots=True)
class Pessoa:
    """A person with every kind of identifier that tables contain. ``marca`` is in each text that the person wrote."""

    telefone: str
    lid: str
    nome: str
    marca: str
    cpf: str
    medico: str
    contato: str
    conversa: str
    agendamento: str
    grupo: str
    mensagem: str
    vaga_grupo: str

    @property
    def sinais(self) -> tuple[str, ...]:
        """Return the texts that identify the person. After the erasure, no table may contain them."""
        local = self.telefone[4:]
        numbers = (self.telefone, self.telefone[:4] + local[1:], f"{local[:5]}-{local[5:]}")
        return (*numbers, self.lid, self.nome, self.marca, self.cpf)


async def insert(work: Batuta, table: str, **values: Any) -> None:
    names = ", ".join(values)
    await write(
        work.database, f"INSERT INTO {table} ({names}) VALUES ({', '.join(f':{name}' for name in values)})", **values
    )


async def dump(work: Batuta) -> dict[str, list[str]]:
    """Return every row of every table as text."""
    names = [row["name"] for row in await rows(work.database, TABLES[work.database.dialect])]
    found = {}
    for name in sorted(names):
        found[name] = [str(row) for row in await rows(work.database, f"SELECT * FROM {name}")]
    return found


async def add_everywhere(work: Batuta, number: int) -> Pessoa:
    """Add a person with data in every table that may contain personal data."""
    new, now, pair = work.ids.new, work.clock.now(), f"{number:02}"
    who = Pessoa(
        telefone=f"55119000000{pair}", lid=f"9990000000{pair}@lid", nome=f"Fictícia{'abcdefgh'[number]}", marca=f"marca-{pair}",
        cpf=f"000.000.0{pair}-00", medico=new(), contato=new(), conversa=new(), agendamento=new(), grupo=new(), mensagem=new(),
        vaga_grupo=new(),
    )  # fmt: skip
    await _conversation(work, who)
    await _groups(work, who)
    task = new()
    await insert(
        work, "appointments", id=who.agendamento, chave=new(), nome_paciente=f"{who.nome} Teste", telefone=who.telefone,
        cpf=who.cpf, endereco_completo=f"Rua {who.marca}", fonte=new(), normalization_job_id=task, created_at=now, updated_at=now,
    )  # fmt: skip
    await insert(
        work, "tasks", id=task, queue="agendamentos", name="normalize_appointment", args=AsJson([who.agendamento]),
        result=AsJson({"lido": who.marca}), status="complete", available_at=now, created_at=now,
    )  # fmt: skip
    await insert(
        work, "webhook_inbox", id=new(), canal="evolution", chave=new(), instance_name="x", evento="messages.upsert",
        payload=AsJson({"data": {"key": {"remoteJid": f"{who.telefone}@s.whatsapp.net"}, "pushName": who.nome}}),
        status="processada", available_at=now, created_at=now, finished_at=now,
    )  # fmt: skip
    await insert(
        work, "audit_log", id=new(), at=now, actor="ana", action="x", subject="x",
        after=AsJson({"nota": f"ligou do {who.telefone}"}),
    )  # fmt: skip
    await insert(
        work, "business_events", id=new(), ts=now, event_type="x", source="backend", cliente_id=who.medico,
        event_props=AsJson({"de": [who.telefone]}),
    )  # fmt: skip
    return who


async def _conversation(work: Batuta, who: Pessoa) -> None:
    new, now, phone = work.ids.new, work.clock.now(), who.telefone
    await insert(
        work, "clientes", id=who.medico, telefone=phone, primeiro_nome=who.nome, sobrenome="Teste", cpf=who.cpf, crm=who.marca,
        created_at=now,
    )  # fmt: skip
    await insert(work, "doctor_state", cliente_id=who.medico, active_objection=who.marca, updated_at=now)
    await insert(work, "external_contacts", telefone=phone, nome=who.nome, created_at=now, updated_at=now)
    await insert(work, "contatos_lid", lid=who.lid, telefone=phone, created_at=now)
    await insert(work, "conversations", id=who.conversa, cliente_id=who.medico, created_at=now, updated_at=now)
    await insert(
        work, "conversas_historico", conversa_id=who.conversa, ordem=1, acao="assumir", por="ana", motivo=f"pediu {who.marca}",
        em=now,
    )  # fmt: skip
    said = {"autor_tipo": "medico", "tipo": "entrada", "created_at": now}
    await insert(
        work, "interacoes", conversation_id=who.conversa, cliente_id=who.medico, conteudo=who.marca, telefone=phone,
        remote_jid=f"{phone}@s.whatsapp.net", provider_message_id=f"um-{who.marca[-2:]}", **said,
    )  # fmt: skip
    await insert(work, "interacoes", conteudo=who.marca, remote_jid=who.lid, **said)
    queued = {
        "cliente_id": who.medico,
        "telefone_destino": phone,
        "conteudo": who.marca,
        "created_at": now,
        "agendar_para": now,
    }
    await insert(work, "fila_mensagens", id=new(), status="enviada", metadata=AsJson({"x": who.marca}), **queued)
    await insert(work, "fila_mensagens", id=new(), status="pendente", **queued)
    await insert(
        work, "fila_mensagens_dlq", id=new(), mensagem_original_id=new(), cliente_id=who.medico, conteudo=who.marca, tipo="x",
        metadata=AsJson({}), tentativas=1, movido_para_dlq_em=now,
    )  # fmt: skip
    await insert(
        work, "mensagens_fora_horario", id=new(), cliente_id=who.medico, conversa_id=who.conversa, inbound_message_id=new(),
        recebida_em=now, contexto=AsJson({"x": who.marca}), created_at=now,
    )  # fmt: skip
    about = {"id": new(), "telefone": phone, "cliente_id": who.medico, "provider_message_id": "x", "created_at": now}
    await insert(work, "pendencias", quem=who.lid, motivo="sem_resposta", ultima_em=now, **about)
    await insert(work, "optouts_provaveis", telefone_chave=phone[:4] + phone[5:], regra="x", **about)
    await insert(
        work, "provedor_mensagens", provider_message_id=new(), instance_name="x", remote_jid=f"{phone}@s.whatsapp.net",
        telefone_chave=phone[:4] + phone[5:], delivery_status="sent", created_at=now, updated_at=now,
    )  # fmt: skip


async def _groups(work: Batuta, who: Pessoa) -> None:
    new, now = work.ids.new, work.clock.now()
    await insert(
        work, "grupos_whatsapp", id=who.grupo, jid=f"{who.marca}@g.us".replace("marca", "grupo"), created_at=now
    )
    await insert(work, "contatos_grupo", id=who.contato, jid=who.lid, nome=who.nome, empresa=who.marca, created_at=now)
    message = {
        "instance_name": "x",
        "status": "processada",
        "timestamp_msg": now,
        "created_at": now,
        "grupo_id": who.grupo,
    }
    await insert(
        work, "mensagens_grupo", id=who.mensagem, contato_id=who.contato, message_id=new(), sender_jid=who.lid,
        sender_nome=who.nome, texto=f"Plantão, falar comigo {who.marca}", **message,
    )  # fmt: skip
    local = who.telefone[4:]
    said = f"Falar com a escala: (11) {local[:5]}-{local[5:]} até sexta"
    await insert(work, "mensagens_grupo", id=new(), message_id=new(), texto=said, sender_nome="Outra", **message)
    await insert(
        work, "vagas_grupo", id=who.vaga_grupo, mensagem_id=who.mensagem, ordinal=1, grupo_origem_id=who.grupo,
        contato_responsavel_id=who.contato, contato_nome=who.nome, observacoes_raw=who.marca, created_at=now, updated_at=now,
    )  # fmt: skip
    await insert(
        work, "vagas_grupo_fontes", vaga_grupo_id=who.vaga_grupo, mensagem_id=who.mensagem, grupo_id=who.grupo,
        contato_id=who.contato, ordem=1, texto_original=who.marca, contato_informado=who.telefone, created_at=now,
    )  # fmt: skip
    await insert(
        work,
        "leituras_modelo",
        chave=new(),
        modelo="x",
        pedida_em=now,
        respondida_em=now,
        resposta=AsJson({"contato": who.nome}),
    )


async def add_shift(work: Batuta, who: Pessoa, status: str) -> str:
    """Add a shift with this status for the person, who is also the contact for the vacancy."""
    new, now = work.ids.new, work.clock.now()
    hospital, area, id = new(), new(), new()
    await insert(work, "hospitais", id=hospital, nome="Hospital Inventado", created_at=now)
    await insert(work, "especialidades", id=area, nome=f"Área {who.marca[-2:]}{status}", created_at=now)
    await insert(
        work, "vagas", id=id, hospital_id=hospital, especialidade_id=area, data=now.date(), status=status, cliente_id=who.medico,
        contato_nome=who.nome, contato_whatsapp=who.telefone, created_at=now, updated_at=now,
    )  # fmt: skip
    await insert(work, "vagas_historico", vaga_id=id, ordem=1, para=status, por="x", motivo="x", em=now)
    return id


def lgpd_of(work: Batuta) -> Any:
    return julia_of(work).personal_data.lgpd
