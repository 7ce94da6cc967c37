"""Types that several contexts share: phone numbers, stable ids, the WhatsApp client."""
