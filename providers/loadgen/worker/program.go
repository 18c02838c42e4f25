package worker

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"strings"
)

// machines are the names that uname -m has for what an ELF header says.
var machines = map[elf.Machine]string{
	elf.EM_X86_64:  "x86_64",
	elf.EM_AARCH64: "aarch64",
	elf.EM_RISCV:   "riscv64",
	elf.EM_PPC64:   "ppc64le",
	elf.EM_S390:    "s390x",
}

// inspect says for which machine a program is, as uname -m would, and that it needs nothing of the host that it runs on: no loader and no libraries.
func inspect(program []byte) (machine string, err error) {
	f, err := elf.NewFile(bytes.NewReader(program))
	if err != nil {
		return "", fmt.Errorf("the program for the worker is not a Linux program: %w", err)
	}
	defer f.Close()
	machine, known := machines[f.Machine]
	if !known {
		return "", fmt.Errorf("the program for the worker is for %s, which is not known here", f.Machine)
	}
	for _, p := range f.Progs {
		if p.Type == elf.PT_INTERP {
			return "", errors.New("this plumb is not a static program: it needs the libraries of the machine that it was built on, so it cannot be copied to another. " +
				"Build it with CGO_ENABLED=0, as 'make build' does")
		}
	}
	return machine, nil
}

// fits checks a program against what uname -m printed on a host.
func fits(machine, host, uname string) error {
	uname = strings.TrimSpace(uname)
	if uname == machine {
		return nil
	}
	return fmt.Errorf("host %s is a %s machine and this plumb was built for %s, so it cannot run there as a generator. Run a plumb that was built for %s, or put the generator on a host of this kind",
		host, uname, machine, uname)
}
