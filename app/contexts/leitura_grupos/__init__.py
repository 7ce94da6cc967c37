"""Read group messages with pure rules for Portuguese, without I/O and without a language model.

    tokens (texto, marcas) → lines and sections (linhas) → vacancies (montagem)

Independently, ``juizo`` decides whether the message is an offer.

The word lists are in ``dados/``; ``docs/grupos.md`` describes how to add a word.
"""
