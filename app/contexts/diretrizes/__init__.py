"""Directives that operators write in documents: the weekly briefing and a template for each type of campaign."""
