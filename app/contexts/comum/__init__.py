"""Values that several contexts share: telephone numbers, stable ids, the WhatsApp port."""
