//go:build !linux

package plugin

import (
	"errors"
	"time"
)

// errLinux is the error on other systems.
var errLinux = errors.New("plugin: plug-ins run on Linux only")

// instance has no implementation on this system.
type instance struct{}

func newInstance(*Config) (*instance, error) { return nil, errLinux }

func (*instance) ask(call, time.Duration, serveFunc) (reply, outcome) { return reply{}, ended }

func (*instance) end() {}

func (*instance) ending() string { return "" }

func (*instance) said() string { return "" }

func (*instance) exceptionText() string { return "" }
