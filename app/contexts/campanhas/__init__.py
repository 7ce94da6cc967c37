"""Campaigns: whom they are for, how they start, and how far they got."""
