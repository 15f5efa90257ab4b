package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent makes the system kill a child when this program ends for any reason. An interrupt
// of the terminal goes to this program alone, which passes it on.
func endWithParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
