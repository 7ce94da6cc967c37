"""Words of addresses with their full forms."""

from typing import Final

# First words of a street's name. Abbreviations match with and without a full stop.
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
# First words of a street's name that also begin neighbourhoods. They name a street only before a number or a complement.
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
# Names of places that stand beside a street and belong to its complement.
PROPRIEDADES: Final = frozenset(["sitio", "sit", "fazenda", "faz", "chacara", "chac", "granja", "haras", "rancho"])
CONJUNTOS: Final = frozenset(
    ["residencial", "res", "resid", "conjunto", "conj", "cj", "condominio", "cond", "vila", "vl"]
)
CONSTRUCOES: Final = frozenset(["casa", "galpao", "sobrado", "predio", "barraca", "barracao", "posto"])
# Words that also match with one wrong letter.
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
# First words of a neighbourhood's name.
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
        "Santa": "sta",
        "Santo": "sto",
        "São": "s",
    }.items()
    for short in shorts.split()
}
BAIRROS_LONGOS: Final = ("jardim", "parque", "setor", "loteamento", "residencial", "cidade")
# Words that begin a neighbourhood regardless of the words before them.
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
# Directions, which are not part of the address.
REFERENCIAS: Final = (
    "prox", "proximo", "proxima", "perto", "em frente", "ao lado", "atras", "esquina", "esq ", "esq.", "portao", "referencia",
    "ref", "px ", "de frente", "em cima", "embaixo", "por tras", "fundo d", "fundos d", "ultima ", "deixar", "tocar",
    "ponto de", "antes d", "depois d", "junto a", "defronte", "entre a", "entre o", "entre as", "casa de cor", "muro", "vizinho",
    "fica ", "antiga ", "antigo ", "subindo", "descendo", "sentido", "altura d", "final da", "inicio da",
    "casa da esquina", "lado d", "entrar ", "virar ", "interfone", "falar com", "campainha", "obs",
)  # fmt: skip
