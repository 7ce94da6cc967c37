"""Queries to a language model with structured answers, within a daily budget and a rate limit."""
