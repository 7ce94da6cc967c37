"""Evolution API: the WhatsApp gateway."""
