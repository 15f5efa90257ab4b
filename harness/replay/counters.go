package replay

import (
	"encoding/json"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
)

// Counter is a counter of a strategy that counts as PyTorch does; see [power.Counted].
type Counter struct {
	Name  string // as in torch.cuda.memory_stats
	Value int64  // bytes or a count, see the name
}

// Counters are the counters of a strategy in its order. In JSON they are one object in that order.
type Counters []Counter

// countersOf returns the counters of s, or nil if it is not [power.Counted].
func countersOf(s alloc.Strategy) (c Counters) {
	// The error means that s is not [power.Counted].
	_ = power.Counters(s, func(name string, value int64) bool {
		c = append(c, Counter{name, value})
		return true
	})
	return c
}

// Get returns the value of the counter with the given name, and whether there is one. O(counters).
func (c Counters) Get(name string) (int64, bool) {
	for i := range c {
		if c[i].Name == name {
			return c[i].Value, true
		}
	}
	return 0, false
}

func (c Counters) MarshalJSON() ([]byte, error) {
	text := []byte{'{'}
	for i := range c {
		if i > 0 {
			text = append(text, ',')
		}
		name, err := json.Marshal(c[i].Name)
		if err != nil {
			return nil, err
		}
		value, err := json.Marshal(c[i].Value)
		if err != nil {
			return nil, err
		}
		text = append(append(append(text, name...), ':'), value...)
	}
	return append(text, '}'), nil
}
