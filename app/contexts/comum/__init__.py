"""Types and helpers that several contexts share, such as phone numbers, stable ids and the WhatsApp client."""
