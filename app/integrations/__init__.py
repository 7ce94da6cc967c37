"""The outside, one folder each: a client and what its errors mean to us."""
