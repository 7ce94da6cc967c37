"""What every store must do, as tests to be run on yours: subclass, give the fixtures, and let pytest collect."""
