# Each target calls the command of dev.py with the same name.
.PHONY: run test check bench faults leitura demo audit wheel setup
run test check bench faults leitura demo audit wheel setup:
	@python3 dev.py $@
