package whatif

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/torchenv"
	"github.com/vramyard/vramyard/internal/units"
)

// memPoolSince is the first release of PyTorch with MemPools.
const memPoolSince = "2.5"

// bestPools returns the private pools of least need, other than the recorded ones, that f accepts
// and users of PyTorch can choose, or easier ones of nearly the same need; nil without any.
func (t *answerWriter) bestPools(f func(*Point) bool) *poolsPoint {
	p := t.Pools
	if p == nil || p.mixed || t.Recorded.Framework != pytorch || !t.ours(&p.base) || !t.allowed(&p.base) {
		return nil
	}
	var possible []*poolsPoint // the easiest first
	least := ^device.Size(0)
	for i := range p.changed {
		if q := &p.changed[i]; t.selectable(q.way) && q.Need() != 0 && f(&q.Point) {
			possible, least = append(possible, q), min(least, q.Need())
		}
	}
	for _, q := range possible {
		if q.Need()-least <= least/nearly {
			return q
		}
	}
	return nil
}

// selectable reports whether a program can change its pools in a way. Graphs cannot be captured
// without a pool, and each of several MemPools has its purpose. To prime a pool takes a MemPool.
func (t *answerWriter) selectable(way string) bool {
	p, version := t.Pools, t.Recorded.Version
	switch way {
	case trace.PoolsMerged:
		return false
	case trace.PoolsShared:
		return p.Captures > 0
	case trace.PoolsLargestFirst:
		return true
	}
	return (p.Captures > 0 || p.pools == 1) && (version == "" || !torchenv.Older(version, memPoolSince))
}

// gerund names a way to change pools.
func (p *Pools) gerund(way string) string {
	switch {
	case way == trace.PoolsShared:
		return "sharing one pool among all captures"
	case way == trace.PoolsLargestFirst:
		return "capturing in descending order of batch size into one pool"
	case p.Captures == 0:
		return fmt.Sprintf("allocating %s first in the MemPool", units.Bytes(p.Priming))
	}
	return fmt.Sprintf("allocating %s first in one pool for all captures", units.Bytes(p.Priming))
}

// program describes a way to change pools in terms of PyTorch.
func (p *Pools) program(way string) string {
	const graph = "torch.cuda.graph(..., pool=shared)"
	switch way {
	case trace.PoolsShared:
		return "Capture each graph with " + graph + "."
	case trace.PoolsLargestFirst:
		return "Capture in descending order of batch size, each graph with " + graph + "."
	}
	warm := fmt.Sprintf("Allocate %s in the pool with torch.cuda.use_mem_pool, on the stream of its later requests, and "+
		"free them at once.", units.Bytes(p.Priming))
	if p.Captures > 0 {
		warm += " Then capture each graph with " + graph + "."
	}
	return warm
}

// code returns lines of Python for a way to change pools.
func (p *Pools) code(way string) []string {
	const handle = "shared = torch.cuda.graph_pool_handle()"
	switch way {
	case trace.PoolsShared:
		return []string{handle, "with torch.cuda.graph(graph, pool=shared):  # each capture"}
	case trace.PoolsLargestFirst:
		return []string{
			handle, "for batch in sorted(batches, reverse=True):", "    with torch.cuda.graph(graphs[batch], pool=shared):",
		}
	}
	block := fmt.Sprintf(`    torch.empty(%d, dtype=torch.uint8, device="cuda")  # freed at once`, uint64(p.Priming))
	if p.Captures == 0 {
		return []string{"with torch.cuda.use_mem_pool(pool):  # before its first request", block}
	}
	return []string{
		"pool, stream = torch.cuda.MemPool(), torch.cuda.Stream()",
		"with torch.cuda.stream(stream), torch.cuda.use_mem_pool(pool):", block,
		"with torch.cuda.graph(graph, pool=pool.id, stream=stream):  # each capture",
	}
}

// pooling recommends other private pools for a run that no setting completes.
func (t *answerWriter) pooling(b *poolsPoint, completes func(*Point) bool) {
	t.choosePools(b)
	t.repooled = b.way
	t.a.Python = append(t.Pools.code(b.way), t.a.Python...)
	yes := ""
	if t.Recorded.Failure != nil {
		yes = "Yes: "
	}
	t.say("%s completes this run on %s; no setting of PyTorch that was %s%s does.",
		sentence(yes+t.Pools.gerund(b.way)), t.cardName(), t.scope(), t.butBaseline(completes))
	t.say("%s", t.Pools.program(b.way))
	t.say("With %s it %s.", t.settingOfPools(), needs(&b.Point))
	t.tight(&b.Point)
	t.costs(&b.Point)
	t.fits(&b.Point)
}

// choosePools chooses the setting of other private pools.
func (t *answerWriter) choosePools(b *poolsPoint) {
	t.choose(&b.Point)
	if t.Pools.base.Recorded {
		t.a.Environment, t.a.Before = nil, nil // they are set
	}
}

// sentence begins a text with a capital letter.
func sentence(text string) string { return strings.ToUpper(text[:1]) + text[1:] }

func (t *answerWriter) settingOfPools() string {
	if t.Pools.base.Recorded {
		return t.Recorded.Settings()
	}
	return t.name(&t.Pools.base)
}

// pooled names other private pools that need noticeably less than the answer.
func (t *answerWriter) pooled() {
	need := t.a.Need
	if need == 0 && t.recorded != nil {
		need = t.recorded.Need()
	}
	switch t.a.Verdict {
	case Setting, Carried, NoCard:
	default:
		return
	}
	b := t.bestPools(func(p *Point) bool { return p.Need() < need-need/nearly })
	if b == nil {
		return
	}
	t.say("%s would need %s with %s: %s less.", sentence(t.Pools.gerund(b.way)), amount(&b.Point),
		t.settingOfPools(), units.Bytes(need-b.Need()))
	t.say("%s", t.Pools.program(b.way))
	t.repooled = b.way
}

// hypothetical describes the accuracy of replays with other pools.
func (t *answerWriter) hypothetical(add func(string, ...any)) {
	p := t.Pools
	if p == nil {
		return
	}
	switch t.repooled {
	case trace.PoolsLargestFirst:
		add("The order of captures is hypothetical: the replay moves the %d captures with the requests and frees that were "+
			"recorded. A program in this order may request other blocks.", p.Captures)
		if t.Recorded.Entries != 0 {
			add("A snapshot does not record captures: here one ends at a request outside of its pool, and MemPools count as " +
				"captures.")
		}
	case trace.PoolsPrimed:
		add("The first allocation in the pool is hypothetical: the replay adds it to the recorded requests.")
	}
	if t.repooled != "" && p.Captures > 0 {
		add("Graphs that share a pool overwrite each other's memory: replay them in the order of their captures, or use " +
			"the outputs of each before the next one runs.")
	}
	if p.Fixed != "" && p.Captures > 1 {
		add("No other order of captures was tried: %s.", p.Fixed)
	}
}
