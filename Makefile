# Each target calls the command of dev.py with the same name.
.PHONY: run test check bench faults matrix leitura demo audit site wheel build setup
run test check bench faults matrix leitura demo audit site wheel build setup:
	@python3 dev.py $@
