"""Ordered stages over one queue table. (Not built yet.)"""
