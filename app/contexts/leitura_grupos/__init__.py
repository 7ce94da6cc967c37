"""Reads messages of groups: pure rules over Portuguese, no I/O, no language model.

    tokens (texto, marcas) → lines and sections (linhas) → vagas (montagem); in parallel: is the message an offer (juizo)

Words live in ``dados/``; ``docs/grupos.md`` says how to add one.
"""
