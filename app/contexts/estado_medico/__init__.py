"""State of each doctor: temperature, lifecycle, permission, objections. Julia's rules of sending read a part of it."""
