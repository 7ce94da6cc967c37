"""The state of each doctor: temperature, lifecycle, permission, objections. The rules that decide about a send read a
part of it.
"""
