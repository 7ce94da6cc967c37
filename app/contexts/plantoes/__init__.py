"""Actions on a vacancy: create, announce, record interest, reserve, release, confirm, cancel and expire."""
