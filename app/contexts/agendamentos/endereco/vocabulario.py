"""Words that occur in addresses, with their expanded forms."""

from collections.abc import Iterable, Mapping
from typing import Final

from app.contexts.agendamentos.texto import plano

S_N: Final = "\ue000"  # placeholder for every spelling of "no number"

# Words that begin a street's name. Abbreviations match with and without a full stop.
TIPOS: Final = {
    short: full
    for full, shorts in {
        "Rua": "rua r ru",
        "Avenida": "avenida av ave aven avda avd",
        "Alameda": "alameda al alam",
        "Travessa": "travessa tv trav tr trv",
        "Praça": "praca pca pc prc pç",
        "Estrada": "estrada estr est etr",
        "Rodovia": "rodovia rod rdv",
        "Largo": "largo lgo lg",
        "Viaduto": "viaduto vd viad",
        "Ladeira": "ladeira ld lad",
        "Beco": "beco bc bco",
        "Viela": "viela",
        "Via": "via",
        "Passagem": "passagem psg pass pas",
        "Servidão": "servidao serv",
        "Acesso": "acesso",
        "Marginal": "marginal marg",
        "Boulevard": "boulevard bulevar blv",
        "Esplanada": "esplanada esp",
        "Caminho": "caminho cam",
        "Ramal": "ramal",
        "Sítio": "sitio sit",
        "Fazenda": "fazenda faz",
        "Chácara": "chacara chac",
        "Colônia": "colonia",
        "Calçada": "calcada",
        "Vereda": "vereda",
        "Escadaria": "escadaria",
        "Escada": "escada",
    }.items()
    for short in shorts.split()
}
# Words that may begin the name of a street or of a neighbourhood. They mean a street only if a house number or a
# complement follows.
TIPOS_RURAIS: Final = {
    short: full
    for full, shorts in {
        "Rio": "rio",
        "Ilha": "ilha",
        "Praia": "praia",
        "Vicinal": "vicinal vic",
        "Linha": "linha",
        "Folha": "folha",
        "Travessão": "travessao",
        "Povoado": "povoado pov",
        "Assentamento": "assentamento assent",
        "Comunidade": "comunidade com comun",
        "Porto": "porto",
        "Gleba": "gleba",
        "Núcleo": "nucleo",
        "Vila": "vila vl",
        "Localidade": "localidade loc",
        "Igarapé": "igarape",
        "BR": "br",
    }.items()
    for short in shorts.split()
}
# Words for rural properties. Next to a street, a property belongs to the complement.
PROPRIEDADES: Final = frozenset(["sitio", "sit", "fazenda", "faz", "chacara", "chac", "granja", "haras", "rancho"])
CONJUNTOS: Final = frozenset(
    ["residencial", "res", "resid", "conjunto", "conj", "cj", "condominio", "cond", "vila", "vl"]
)
# Street types that also match with one wrong letter.
TIPOS_LONGOS: Final = ("avenida", "alameda", "travessa", "praca", "estrada", "rodovia", "largo", "ladeira", "servidao")
# Complements with a value: Apto 45.
COM_VALOR: Final = {
    short: full
    for full, shorts in {
        "Apto": "apartamento apto apt ap apart aparto aptº apo apta",
        "Bloco": "bloco bl blc blo",
        "Torre": "torre tor",
        "Casa": "casa cs csa",
        "Cobertura": "cobertura cob",
        "Sala": "sala sl sls",
        "Conjunto": "conjunto conj cj cjto cjt",
        "Loja": "loja lj",
        "Quadra": "quadra qd qda qdra q",
        "Lote": "lote lt lte l",
        "Box": "box bx",
        "Sobrado": "sobrado sobr",
        "Andar": "andar",
        "Unidade": "unidade und unid",
        "Galpão": "galpao galp gp",
        "Chalé": "chale",
        "Suíte": "suite",
        "Kitnet": "kitnet kit quitinete kitinete",
        "Flat": "flat",
        "Entrada": "entrada",
        "Quarto": "quarto qto",
        "Módulo": "modulo mod",
        "Chácara": "chacara ch",
        "Prédio": "predio",
    }.items()
    for short in shorts.split()
}
# Complements without a value: Fundos.
SEM_VALOR: Final = {
    short: full
    for full, shorts in {
        "Fundos": "fundos fds fd fdos fundo",
        "Frente": "frente fte",
        "Térreo": "terreo",
        "Sobreloja": "sobreloja slj",
        "Cobertura": "cobertura cob",
        "Subsolo": "subsolo ss",
        "Sobrado": "sobrado",
        "Mezanino": "mezanino",
        "Altos": "altos",
        "Porão": "porao",
        "Edícula": "edicula",
        "Casa": "casa cs",
    }.items()
    for short in shorts.split()
}
# Complements with a name: Edifício Solar.
COM_NOME: Final = {
    short: full
    for full, shorts in {
        "Edifício": "edificio ed edif edf",
        "Condomínio": "condominio cond condom",
        "Torre": "torre",
        "Bloco": "bloco bl",
    }.items()
    for short in shorts.split()
}
COMPLEMENTOS_LONGOS: Final = ("apartamento", "bloco", "fundos", "condominio", "edificio", "conjunto")
# Words that begin a neighbourhood's name.
BAIRROS: Final = {
    short: full
    for full, shorts in {
        "Jardim": "jardim jd jdm jard jrd jar",
        "Vila": "vila vl v vla",
        "Parque": "parque pq pque parq pqe prq",
        "Cidade": "cidade cid cd",
        "Setor": "setor st set",
        "Loteamento": "loteamento lot loteam",
        "Residencial": "residencial res resid",
        "Conjunto": "conjunto conj cj",
        "Núcleo": "nucleo nuc",
        "Distrito": "distrito dist",
        "Chácara": "chacara chac ch",
        "Recanto": "recanto rec",
        "Balneário": "balneario baln",
        "Centro": "ctr cto",
        "Alto": "alt",
        "Sítio": "sit",
        "Povoado": "pov",
    }.items()
    for short in shorts.split()
}
BAIRROS_LONGOS: Final = ("jardim", "parque", "setor", "loteamento", "residencial", "cidade")
# Words that begin a neighbourhood, whichever words come before them.
INICIAM_BAIRRO: Final = frozenset(
    [
        "jardim",
        "jd",
        "jdm",
        "vila",
        "vl",
        "parque",
        "pq",
        "pque",
        "setor",
        "loteamento",
        "lot",
        "residencial",
        "centro",
        "bairro",
        "zona",
        "cidade",
        "cid",
        "nucleo",
        "recanto",
    ]
)


def _classes(kinds: Mapping[str, Iterable[str]]) -> dict[str, str]:
    found: dict[str, str] = {}
    for kind, words in kinds.items():
        for word in {plano(each) for each in (words.split() if isinstance(words, str) else words)}:
            found[word] = f"{found[word]}+{kind}" if word in found else kind
    return found


# Classes of words by which the tagger distinguishes the fields. A word may have several classes: "casa" is a complement
# with a value and one without.
CLASSES: Final = _classes(
    {
        "tipo": TIPOS,
        "rural": TIPOS_RURAIS,
        "item": COM_VALOR,
        "so": SEM_VALOR,
        "predio": COM_NOME,
        "bairro": {*BAIRROS, *INICIAM_BAIRRO, *BAIRROS.values()} - {"bairro"},
        "sitio": PROPRIEDADES,
        "rotulo": """
            end endereco logradouro nome tipo bairro bair b numero num compl complemento cidade municipio mun cid uf estado
            cep ref referencia obs ponto local residencia distrito localidade cod codigo mora reside residente
        """,
        "marca": "n no nº n° nr num numero nro",
        "km": "km quilometro",
        "de": "de da do das dos e del di d",
        "em": "em na no nas nos a ao aos as com c",
        "titulo": """
            dr dra doutor doutora cel coronel mal marechal gen gal general prof profa professor professora pres presidente
            sen senador dep deputado gov governador pref prefeito ver vereador pe padre frei dom dona d cap capitao ten
            tenente sgt maj major alm almirante brig eng engenheiro des desembargador min ministro barao visconde visc
            conde conego cons conselheiro mons monsenhor irma irmao madre pastor bispo duque marques cmte comandante cabo
            soldado expedicionario jornalista maestro
        """,
        "santo": "sao santo santa sto sta s nossa senhora sra nsa ns",
        "mes": "janeiro fevereiro marco abril maio junho julho agosto setembro outubro novembro dezembro",
        "perto": """
            prox proximo proxima px perto frente lado atras tras esquina esq portao muro vizinho vizinha defronte antes
            depois final inicio fim altura entre subindo descendo sentido entrada cor fica ref referencia ponto mercado
            mercadinho escola igreja posto padaria praca bar farmacia ubs creche colegio campo quadra ponte trevo rotatoria
            banco supermercado proximidades junto entrar virar tocar interfone campainha falar deixar segunda primeira
            ultima terceira amarela azul verde branca vermelha cinza embaixo cima cercado
        """,
        "longe": "zona rural interior centro",
        "numero": "um dois tres quatro cinco seis sete oito nove dez onze doze treze quinze vinte primeiro",
        "brasilia": """
            sqs sqn sqsw sqnw qr qi ql qe qs cln cls clsw clrn crs csb cnb csa cna shis shin shcgn shces shigs scs scn sgas
            sgan smpw sia eqnm eqnn eqs eqn qc ae aos qms qrsw scrn scrs sbs sbn shtn shs shn sclrn hcgn sds qrc ceqn scln scls
        """,
        "br": "br rodovia rod",
    }
)
# Labels of the fields, such as "Bairro:". ``t`` is the type of the street, ``x`` is not a field of an address.
ROTULOS: Final = {
    short: field
    for field, shorts in {
        "l": "end endereco logradouro nome rua avenida local residencia r av logr",
        "t": "tipo tp",
        "n": "n no nº n° nr num numero nro",
        "c": "compl complemento comp cpl",
        "b": "bairro bair b",
        "m": "cidade municipio mun cid",
        "u": "uf estado est",
        "x": "cep ref referencia obs ponto observacao fone tel",
    }.items()
    for short in shorts.split()
}
