"""Guards: whether work may start now. Asked before a claim and again at the instant of the effect."""
