"""Functions and types that other contexts may import to read inbound texts."""

from app.contexts.leitura_conversas.leitor import ler
from app.contexts.leitura_conversas.tipos import Classe, Leitura, OptOut

__all__ = ["Classe", "Leitura", "OptOut", "ler"]
