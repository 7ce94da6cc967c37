# The same words as dev.py.
.PHONY: run test check bench faults demo wheel setup
run test check bench faults demo wheel setup:
	@python3 dev.py $@
