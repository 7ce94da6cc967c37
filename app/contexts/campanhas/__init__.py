"""Campaigns: their audience, their start and their reach."""
