# The same words as dev.py, for people's habits. No word here does anything of its own.
.PHONY: run test check bench faults demo setup
run test check bench faults demo setup:
	@python3 dev.py $@
