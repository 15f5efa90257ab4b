package workload

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/device"
)

// parameter matches a parameter in a name.
var parameter = regexp.MustCompile(`^[a-z]+[0-9]+$`)

// Named returns the workload with a [Workload.Name], such as w1-live10000-seed7, and whether the
// name begins like one. The error names a wrong parameter.
func Named(name string) (w Workload, ok bool, err error) {
	parts := strings.Split(name, "-")
	s, err := Lookup(parts[0])
	if err != nil || slices.ContainsFunc(parts[1:], func(part string) bool { return !parameter.MatchString(part) }) {
		return w, false, nil
	}
	p := s.Default
	for _, part := range parts[1:] {
		digits := strings.TrimLeft(part, "abcdefghijklmnopqrstuvwxyz")
		param := part[:len(part)-len(digits)]
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || !p.set(param, n) {
			return w, true, fmt.Errorf("workload %s: %q: want parameters as in w1-live10000-seed7", s.Name, part)
		}
	}
	w, err = s.New(p)
	return w, true, err
}

// set sets a parameter that has a default, and reports whether there is such a one.
func (p *Params) set(name string, n uint64) bool {
	for _, q := range p.list() {
		if q.name == name && q.value == 0 && name != "seed" {
			return false
		}
	}
	switch name {
	case "live":
		p.Live = int(n)
	case "pairs":
		p.Pairs = int(n)
	case "steps":
		p.Steps = int(n)
	case "least":
		p.Least = device.Size(n)
	case "most":
		p.Most = device.Size(n)
	case "seed":
		p.Seed = n
	default:
		return false
	}
	return true
}
