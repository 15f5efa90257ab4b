//go:build planted

package check_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/vramyard/vramyard/device"
	bugs "github.com/vramyard/vramyard/internal/planted"
	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/strategies"
)

func TestDbg(t *testing.T) {
	for _, b := range bugs.Bugs() {
		if only := os.Getenv("ONLY"); only != "" && !strings.Contains(string(b.ID), only) {
			continue
		}
		s, err := check.Plantable(strategies.All(), b)
		if err != nil {
			t.Fatal(b.ID, err)
		}
		seq, err := props.ParseSequence(b.Minimal)
		if err != nil {
			t.Fatal(b.ID, err)
		}
		if b.Judge != bugs.ByHeap {
			if err := props.Repeat(s, seq, device.FaultPlan{Nth: b.Nth}); err != nil {
				fmt.Println("CLEAN FAILS", b.ID, err)
			}
			bugs.Set(b.ID)
			all, err := check.Broken(s, seq, device.FaultPlan{Nth: b.Nth})
			bugs.Set(bugs.None)
			missing := []string{}
			for _, w := range b.Breaks {
				if !strings.Contains(" "+strings.Join(all, " ")+" ", " "+w+" ") {
					missing = append(missing, w)
				}
			}
			fmt.Printf("MIN %-36s want %v broke %v missing %v %v\n", b.ID, b.Breaks, all, missing, err)
		}
		if os.Getenv("FIND") == "" {
			continue
		}
		start := time.Now()
		v, err := check.Planted(strategies.All(), b, check.Options{Seed: 1, Tries: 2000})
		flag := ""
		if !v.Caught() {
			flag += " NOTCAUGHT"
		}
		if !v.Small() {
			flag += " BIG"
		}
		fmt.Printf("FIND %-36s %v seq %d shrunk %d min %d %v%s err %v\n", b.ID, v.Broken, v.Sequences, v.Shrunk, v.Minimal, time.Since(start).Round(time.Millisecond), flag, err)
		if flag != "" && v.Failure != nil {
			fmt.Println(v.Failure)
		}
	}
}
