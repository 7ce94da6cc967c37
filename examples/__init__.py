"""Small programs that use only batuta. Tests run each of them."""
