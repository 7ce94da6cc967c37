"""Typed functions on a queue. (Not built yet.)"""
