"""The life of a vacancy: create, announce, interest, reserve, release, confirm, cancel, expire."""
