//go:build !linux

package plugin

import (
	"errors"
	"time"
)

// errLinux says where plug-ins can be run.
var errLinux = errors.New("plugin: plug-ins run on Linux only")

// instance is what there is none of here.
type instance struct{}

func newInstance(*Config) (*instance, error) { return nil, errLinux }

func (*instance) ask(call, time.Duration, serveFunc) (reply, outcome) { return reply{}, ended }

func (*instance) end() {}

func (*instance) ending() string { return "" }

func (*instance) said() string { return "" }
