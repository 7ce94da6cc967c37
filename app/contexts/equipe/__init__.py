"""The team: notices that a conversation needs a person, and the help desk in which people answer doctors."""
