package trace

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/alloc/power"
)

// Options of a private pool, in the text of a [PoolBegin].
const (
	PoolUseOnOOM = "use_on_oom" // UseOnOOM of [power.PoolOptions]
	PoolNoSplit  = "no_split"   // NoSplit of [power.PoolOptions]
)

// PoolOptions returns the options that the tag of a [PoolBegin] sets: "", "use_on_oom", "no_split"
// or "use_on_oom,no_split". It fails for any other text.
func PoolOptions(text string) (o power.PoolOptions, err error) {
	for _, o.UseOnOOM = range []bool{false, true} {
		for _, o.NoSplit = range []bool{false, true} {
			if textOf(o) == text {
				return o, nil
			}
		}
	}
	return power.PoolOptions{}, fmt.Errorf("options %s: want %s, %s or both with a comma between them, in this order",
		clip([]byte(text)), PoolUseOnOOM, PoolNoSplit)
}

// textOf returns the text of the options of a pool.
func textOf(o power.PoolOptions) string {
	var all []string
	if o.UseOnOOM {
		all = append(all, PoolUseOnOOM)
	}
	if o.NoSplit {
		all = append(all, PoolNoSplit)
	}
	return strings.Join(all, ",")
}

// withOption returns the text of options with one more, if the way of [Repool] is one.
func withOption(text, way string) (string, error) {
	o, err := PoolOptions(text)
	o.UseOnOOM = o.UseOnOOM || way == PoolUseOnOOM
	o.NoSplit = o.NoSplit || way == PoolNoSplit
	return textOf(o), err
}
