"""The team: notices to the team that a conversation needs a person, and the help desk in which people answer."""
