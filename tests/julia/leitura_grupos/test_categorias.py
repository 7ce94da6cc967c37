"""The category of a group message. Some messages use the words of an offer without being one, and some offers use none
of these words.
"""

import pytest

from app.contexts.leitura_grupos.api import Categoria
from tests.julia.leitura_grupos.exemplos import lida

OFERTA, PROCURA, SPAM, PROPAGANDA, AVISO, OUTRO = (
    Categoria.OFERTA, Categoria.PROCURA, Categoria.SPAM, Categoria.PROPAGANDA, Categoria.AVISO, Categoria.OUTRO,
)  # fmt: skip


@pytest.mark.parametrize(
    ("texto", "categoria"),
    [
        ("ATLS em Belém, dias 8 e 9/08, das 8h às 18h. Últimas 3 vagas, R$ 2.100. Falar com Fulana 91 98100-0001", PROPAGANDA),
        ("Curso de BLS dia 10/08 no Hospital Teste do Norte, R$ 600 em até 6x, restam 5 vagas", PROPAGANDA),
        ("Clínico com ATLS em dia, HTN dia 10/08 SN, R$ 1.600. Fulana 91 98100-0001", OFERTA),
        ("Vendo otoscópio na caixa, 300 reais, retirada no HTN", PROPAGANDA),
        ("Vendo meu plantão do dia 10/08 SN no HTN, R$ 1.500, clínica médica", OFERTA),
        ("Passo ponto de lanchonete em frente ao hospital, 60 mil", PROPAGANDA),
        ("Advogada especialista em direito médico. Atendo médicos de plantão. 91 98100-0001", PROPAGANDA),
        ("Regularize seu cadastro no conselho ou seu registro será cancelado: http://exemplo.invalid/x", SPAM),
        ("Alguém troca comigo? Tenho SN 10/08 no HTN e preciso do sábado 15/08", OUTRO),
        ("Troco ou preciso de alguém que cubra meu SN 10/08 no HTN, pago R$ 1.500", OFERTA),
        ("Quem souber de plantão para pediatra em Belém me avisa, por favor", PROCURA),
        ("UPA Exemplo Leste precisa de clínico dia 10/08 SD, pode ser recém-formado, R$ 1.300 PJ", OFERTA),
        ("Sou recém-formado e aceito plantões em Belém e região", PROCURA),
        ("Montando banco de plantonistas para o próximo ano. Sem vagas no momento", OUTRO),
        ("Regras do grupo: proibido spam. Troca de plantão só no privado", AVISO),
        ("📍 Endereço: Travessa Fictícia, 100, fundos", OUTRO),
        ("Vi a vaga do HTN sábado SD, ainda está disponível? Tenho interesse", PROCURA),
        ("se sobrar algum noturno no HTN me avisem", PROCURA),
        ("meu irmão é pediatra e está querendo plantão em Belém", PROCURA),
        ("Alguém sabe de hospital precisando de ortopedista?", PROCURA),
        ("Preciso de 3 plantões em agosto, de preferência no HTN", PROCURA),
        ("Eu quero esse do HTN dia 10!", PROCURA),
        ("Sabem de algum hospital com escala aberta? HTN, HGM...", PROCURA),
        ("quem me consegue um SD no HTN em agosto?", PROCURA),
        ("Minha irmã é recém-formada e procura o primeiro plantão em Belém", PROCURA),
        ("Estou à procura de um médico para o HTN dia 10/08 SN, 1.500", OFERTA),
        ("Fisioterapeuta intensivista: HTN precisa para 10/08, 12h dia, R$ 320", OUTRO),
        ("A escala de setembro do HTN sai dia 25/08. Quem tiver restrição avise até sexta", AVISO),
        ("O plantão de domingo passado no HTN foi puxado, só dois clínicos. 1.300 não paga isso", Categoria.CONVERSA),
        ("Segue minha NF nº 0048 ref. aos plantões de julho no HTN, valor R$ 7.200,00", OUTRO),
        ("ortopedista se oferecendo para cobrir o HTN dias 10 a 12/08", PROCURA),
        ("Comprovante de pagamento\nR$ 1.500,00\n03/08/2026\nRef. plantão HTN 10/07", OUTRO),
        ("Reajuste: o plantão de 12h do HTN passa para R$ 1.900 para quem é da escala atual", AVISO),
        ("Os repasses de julho do HTN foram liberados, confiram: R$ 1.500 por SD", AVISO),
        ("Quarto p/ plantonista perto do HTN, R$ 80 a noite, wi-fi. Fulana 91 98100-0001", PROPAGANDA),
        ("Jornada de Pediatria do HTN, 28/08, das 8h às 18h. Inscrição R$ 120, com certificado", PROPAGANDA),
        ("Passo minha bicicleta quase nova, R$ 900. Fulana 91 98100-0001", PROPAGANDA),
        ("Passo minha noite de 10/08 no HTN, R$ 1.500", OFERTA),
        ("Diarista de enfermaria no HTN, segunda a sexta 7h-13h, contrato PJ mensal de R$ 14.000", OUTRO),
        ("amanhã SD clínico 1.500 à vista, alguém?? me chama no pv que explico onde é", OFERTA),
        ("PLANTÕES 24H NO INTERIOR, R$ 3.800 LIVRES. INTERESSADOS 91 98100-0001", OFERTA),
        ("HTN 10/08 SN ✅ ok Dra. Fulana / 11/08 SD ✅ ok Dr. Beltrano. Nada em aberto", AVISO),
        ("Obrigada Dr. Fulano por cobrir meu SD no HTN domingo", Categoria.CONVERSA),
        ("Já tinha fechado com outro colega o SN de quinta?", Categoria.CONVERSA),
        ("maior fila hoje, saí do plantão 7h e só cheguei em casa 10h", Categoria.CONVERSA),
    ],
)  # fmt: skip
def test_category_of_a_message(texto: str, categoria: Categoria) -> None:
    assert lida(texto).categoria is categoria


def test_struck_line_closes_itself_and_no_line_below() -> None:
    text = "HTN - ortopedia\n~10/08 SN~ fechado\n11/08 SD R$ 2.000\n12/08 SN R$ 2.200"
    assert [(f"{each.data.valor:%d/%m}", each.periodo.valor.value) for each in lida(text).vagas] == [
        ("11/08", "diurno"), ("12/08", "noturno"),
    ]  # fmt: skip


def test_patient_transport_company_is_the_place_in_either_word_order() -> None:
    after = "Remoção UTI móvel\nBase Belém - Remoções Vida Teste\n10/08/2026 07-19h R$ 1.100\nFulano 91 98100-0001"
    before = after.replace("Remoções Vida Teste", "Vida Teste Remoções")
    assert [each.hospital.valor for each in lida(after).vagas] == ["Remoções Vida Teste"]
    assert [each.hospital.valor for each in lida(before).vagas] == ["Vida Teste Remoções"]
