"""The state of each doctor: temperature, lifecycle, permission, objections. The rules of sending read parts of it."""
