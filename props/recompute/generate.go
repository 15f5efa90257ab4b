package recompute

import (
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/remat"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// drawer draws a log.
type drawer struct {
	r    *workload.Rand
	log  Log
	live []int // tensors with a reference
	next int   // name of the next tensor
}

func (d *drawer) below(n int) int { return int(d.r.Below(uint64(n))) }

// Draw returns a random log of this many operators: constants, operators of up to four inputs, most
// of them young, with repeats, views, several outputs, in-place writes to constants, drops and
// releases. Some tensors take no bytes and some operators no time. The budget is at most the bytes
// that the log takes without one.
func Draw(r *workload.Rand, operators int) Log {
	d := drawer{r: r}
	weights := make([]int, 1+d.below(3))
	for i := range weights {
		weights[i] = d.call(Op{Time: 1, Fixed: true, Outputs: []Output{{Size: device.Size(d.below(20))}}})
	}
	for range operators {
		if d.below(10) == 0 {
			i := d.below(len(weights))
			weights[i] = d.write(weights[i])
		}
		d.operator()
		for len(d.live) > 1 && d.below(3) > 0 {
			d.release(d.below(len(d.live)))
		}
		if d.below(6) == 0 {
			d.log.Ops = append(d.log.Ops, Op{Kind: Drop, Of: d.live[d.below(len(d.live))]})
		}
		if d.below(6) == 0 {
			last := d.live[len(d.live)-1]
			d.log.Ops = append(d.log.Ops, Op{Kind: Retain, Of: last}, Op{Kind: Release, Of: last})
		}
	}
	return d.budgeted()
}

// budgeted returns the log with a budget.
func (d *drawer) budgeted() Log {
	c := remat.Config{Heuristic: "lru", Liveness: "none"}
	if res, err := remat.Run(d.log.Schedule(), &remat.Counter{Budget: remat.Unlimited}, c); err == nil {
		d.log.Budget = device.Size(d.r.Below(uint64(res.Peak) + 1))
	}
	return d.log
}

// call adds an operator and returns the name of its first output.
func (d *drawer) call(o Op) int {
	first := d.next
	for i := range o.Outputs {
		o.Outputs[i].Name = d.next
		d.live = append(d.live, d.next)
		d.next++
	}
	d.log.Ops = append(d.log.Ops, o)
	return first
}

func (d *drawer) operator() {
	o := Op{Time: int64(d.below(12)), Fixed: d.below(40) == 0, Work: device.Size(max(0, d.below(20)-15))}
	for range d.below(5) {
		at := max(0, len(d.live)-1-d.below(4))
		if d.below(4) == 0 {
			at = d.below(len(d.live))
		}
		o.Reads = append(o.Reads, d.live[at])
	}
	for range 1 + max(0, d.below(5)-2) {
		out := Output{Size: device.Size(d.below(30))}
		if len(o.Reads) > 0 && d.below(4) == 0 {
			out = Output{View: true, Of: o.Reads[d.below(len(o.Reads))]}
		}
		o.Outputs = append(o.Outputs, out)
	}
	d.call(o)
}

// write writes to a weight in place and returns its new name.
func (d *drawer) write(weight int) int {
	by := d.live[d.below(len(d.live))]
	next := d.call(Op{Time: 1, Fixed: true, Reads: []int{weight, by}, Outputs: []Output{{Write: true, Of: weight}}})
	for i, l := range d.live {
		if l == weight {
			d.release(i)
			break
		}
	}
	return next
}

// release releases a live tensor.
func (d *drawer) release(at int) {
	d.log.Ops = append(d.log.Ops, Op{Kind: Release, Of: d.live[at]})
	d.live = append(d.live[:at:at], d.live[at+1:]...)
}

// DrawChain returns a random log that plans accept: n operators in a row, and operators that read
// their results in reverse order, each with the result beside it or alone. Without variety all
// results have one byte and all operators take the same time.
func DrawChain(r *workload.Rand, n int, variety bool) Log {
	d := drawer{r: r}
	call := func(reads ...int) int {
		size, time := device.Size(1), int64(1)
		if variety {
			size, time = device.Size(1+d.below(5)), int64(1+d.below(9))
		}
		return d.call(Op{Time: time, Reads: reads, Outputs: []Output{{Size: size}}})
	}
	results := []int{d.call(Op{Fixed: true, Outputs: []Output{{Size: 1}}})}
	for i := range n {
		results = append(results, call(results[i]))
	}
	gradient := call(results[n])
	for j := n; j >= 1; j-- {
		reads := []int{results[j-1]}
		if j == 1 {
			reads = []int{results[0], results[1]}
		} else if variety {
			reads = [][]int{{results[j]}, {results[j-1]}, {results[j], results[j-1]}, {results[j-1], results[j]}}[d.below(4)]
		}
		next := call(append([]int{gradient}, reads...)...)
		d.log.Ops = append(d.log.Ops, Op{Kind: Release, Of: gradient})
		gradient = next
	}
	for _, t := range append(results[1:], gradient) {
		d.log.Ops = append(d.log.Ops, Op{Kind: Release, Of: t})
	}
	return d.budgeted()
}
