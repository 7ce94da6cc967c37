"""Map the titles of a sheet's columns to appointment fields."""

import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Final

from app.contexts.agendamentos.texto import limpo, plano

# Known titles of each field. The first title is the one shown to people.
CABECALHOS: Final[Mapping[str, tuple[str, ...]]] = {
    "nome_paciente": ("Nome do Paciente", "paciente", "nome paciente", "nome", "nome completo"),
    "nome_marca": ("Nome da Marca", "marca", "nome marca"),
    "nome_unidade": ("Nome da Unidade", "unidade", "nome unidade", "unidade de atendimento", "local"),
    "data": ("Data", "data do agendamento", "data agendamento", "data da consulta", "dia", "data agendada"),
    "hora": ("Hora", "horario", "hora do agendamento", "hora agendamento", "horario da consulta", "horario agendado"),
    "data_hora": (
        "Data/Hora Início Agendamento", "data hora agendamento", "data hora inicio", "data hora do agendamento", "data e hora",
        "data hora", "inicio agendamento", "data hora de inicio do agendamento",
    ),
    "status": ("Status Agendamento", "status confirmacao", "status", "situacao", "status do agendamento", "status da confirmacao"),
    "telefone": (
        "Telefone", "contato do paciente", "contato s do paciente", "contato", "celular", "fone", "telefone do paciente",
        "whatsapp",
    ),
    "observacoes": ("Observações", "observacao", "obs"),
    "exames": ("Nomes dos Exames", "exame", "nome do exame", "nome dos exame"),
    "sala": ("Nome da Sala", "sala"),
    "carro": ("Carro",),
    "canal_confirmacao": ("Canal Confirmação", "canal de confirmacao", "canal da confirmacao"),
    "data_hora_confirmacao": ("Data/Hora Confirmação", "data hora da confirmacao", "data hora de confirmacao"),
    "data_confirmacao": ("Data Confirmação", "data da confirmacao", "data de confirmacao"),
    "hora_confirmacao": ("Hora Confirmação", "hora da confirmacao", "hora de confirmacao"),
    "cep": ("CEP",),
    "endereco_coleta": ("Endereço Coleta", "endereco da coleta", "endereco de coleta"),
    "endereco_completo": (
        "Endereço Completo", "endereco", "endereco do paciente", "endereco completo do paciente", "logradouro", "rua",
        "nome do logradouro", "endereco rua",
    ),
    "tipo_logradouro": ("Tipo de Logradouro", "tipo logradouro", "tp logr", "tipo logr", "tp logradouro"),
    "numero_endereco": ("Número", "no", "n", "nr", "num", "nro", "numero da casa", "no casa", "numero do endereco"),
    "complemento": ("Complemento", "compl", "complemento do endereco"),
    "bairro": ("Bairro", "bairro do paciente", "bairro distrito"),
    "cidade": (
        "Cidade", "municipio", "cidade do paciente", "municipio de residencia", "cidade de residencia", "cidade uf",
        "municipio uf",
    ),
    "uf": ("UF", "estado", "estado uf"),
    "documento_completo": (
        "Documento Completo", "documento", "documento do paciente", "documento s do paciente", "documento s", "cpf rg",
        "cpf e rg", "doc",
    ),
    "cpf": ("CPF", "cpf do paciente", "cpf paciente", "no cpf", "numero do cpf", "numero cpf"),
    "rg": ("RG", "rg do paciente", "rg paciente", "no rg", "numero do rg"),
    "cns": (
        "CNS", "cartao sus", "cartao do sus", "cartao nacional de saude", "no cartao sus", "numero do cartao sus",
        "cns do paciente",
    ),
    "sobrenome": ("Sobrenome", "sobrenome do paciente", "ultimo nome"),
    "ddd": ("DDD",),
    "convenio": ("Convênio", "plano", "plano de saude"),
    "numero_convenio": ("Número Convênio", "numero do convenio", "nr convenio", "n convenio"),
    "nome_convenio": ("Nome do Convênio", "nome convenio"),
    "carteira_convenio": ("Nr. Carteira", "numero da carteira", "carteira", "carteirinha", "nr da carteira", "carteira convenio"),
    "especialidade": ("Especialidade",),
    "origem_id": ("Código do Agendamento", "id agendamento", "codigo agendamento", "id do agendamento", "protocolo", "origem id"),
}  # fmt: skip


@lru_cache(maxsize=512)
def campo_de(titulo: str) -> str | None:
    """Return the field that a column title names. The comparison ignores plurals, accents, capitals and punctuation."""
    return _FIELDS.get(_key(titulo))


def _key(titulo: str) -> str:
    words = re.findall(r"[a-z0-9]+", plano(limpo(titulo)))
    return " ".join(_singular(word) for word in words)


def _singular(word: str) -> str:
    if word.endswith("oes"):
        return f"{word[:-3]}ao"
    return word[:-1] if len(word) > 3 and word.endswith("s") and word not in ("status", "obs", "whats") else word


_FIELDS: Final = {_key(name): field_ for field_, names in CABECALHOS.items() for name in names}
