"""What was said between a doctor and us, and what it means for speaking to him again."""
