"""Queries to a language model with structured answers, within a budget and a rate limit."""
