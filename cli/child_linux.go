package cli

import (
	"os/exec"
	"syscall"
)

// endWithParent has the system kill a program when this one is gone, however it ends. An interrupt
// of the terminal goes to this program alone, which passes it on.
func endWithParent(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
