"""Values that several contexts share: phone numbers, stable ids, the WhatsApp port."""
