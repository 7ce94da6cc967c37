"""The record of every execution, and who closes the ones whose process died. (Not built yet.)"""
