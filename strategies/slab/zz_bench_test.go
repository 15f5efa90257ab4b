package slab_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/propstest"
	"github.com/vramyard/vramyard/strategies/slab"
)

func BenchmarkZZ(b *testing.B) {
	var all []props.Subject
	for _, text := range strings.Split(os.Getenv("ZZ"), ";") {
		var c slab.Config
		if err := json.Unmarshal([]byte(text), &c); err != nil {
			b.Fatal(err)
		}
		all = append(all, props.SubjectOf(text, slab.New, c, sim.Config{}, c.Promises()))
	}
	if os.Getenv("ZZU") != "" {
		propstest.Uniform(1, 16*device.KiB).At(1000, 10000, 100000).Bench(b, all...)
		return
	}
	propstest.Bench(b, all...)
}
