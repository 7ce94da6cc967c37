"""Durable queues: claim, lease, settle, rescue. (Not built yet.)"""
