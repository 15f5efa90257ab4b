package whatif

import (
	"fmt"

	"github.com/vramyard/vramyard/internal/units"
)

func (t *teller) sure() {
	add := func(format string, args ...any) { t.a.Sure = append(t.a.Sure, fmt.Sprintf(format, args...)) }
	if t.Cannot != "" {
		return
	}
	t.margin(add)
	t.fidelity(add)
	switch {
	case t.a.Since != "" && t.a.Before == nil:
		add("The file does not have the version of %s. Releases before %s do not have these settings.",
			t.Recorded.Framework, t.a.Since)
	case t.a.Since != "":
		add("The file does not have the version of %s. Releases before %s may ignore the newer variable without a message.",
			t.Recorded.Framework, t.a.Since)
	}
	r := &t.Recorded
	if r.Opening > 0 {
		add("The recording begins with %s live allocations. They are placed anew, without the holes that were between: "+
			"needs may "+
			"be larger than told.", units.Count(uint64(r.Opening)))
	}
	if r.Doubts > 0 {
		add("%s things in the file do not fit together; trace info lists them.", units.Count(uint64(r.Doubts)))
	}
	if r.Pools > 0 && !t.pools {
		add("Private pools (CUDA graphs) are in the recording and not in the replay, which shares their memory: needs may " +
			"be larger than told.")
	}
	if t.pools {
		add("Private pools (CUDA graphs) are replayed, and kept apart by the strategies that have such; others share their " +
			"memory and may need less than a graph could do with.")
	}
	if r.Streams > 1 {
		add("%d streams ask for memory. Which blocks they share the recording tells only by when a free "+
			"became final.", r.Streams)
	}
	if r.Rounded {
		add("Of what was refused only the size that the allocator made of it is known; the request may have been smaller.")
	}
	switch {
	case r.Capacity != 0 && t.Card == r.Capacity:
		add("The card counts as what was held when memory ran out and what the device had left: %s. The CUDA context and "+
			"libraries "+
			"have theirs besides.", units.Bytes(t.Card))
	default:
		add("Of the CUDA context and libraries %s are counted when a card is named. NCCL and other programs may need more.",
			units.Bytes(contextReserve))
	}
	if t.Budget != 0 {
		add("Minima are found by halving, as if more memory never hurt. Safe from is the smallest capacity from which on " +
			"nothing failed that was tried up to 1.25 times it; --grid full tries more.")
	}
}

// margin says how much of the card is to spare, if that is little.
func (t *teller) margin(add func(string, ...any)) {
	need := t.a.Need
	if need == 0 && t.recorded != nil {
		need = t.recorded.Need()
	}
	if t.Card == 0 || need == 0 || need > t.Card {
		return
	}
	if spare := t.Card - need; spare < t.Card/closeMargin {
		add("That is close: %s are to spare, %s of the card.", units.Bytes(spare),
			units.Percent(float64(spare)/float64(t.Card)))
	}
}

func (t *teller) fidelity(add func(string, ...any)) {
	r := &t.Recorded
	switch {
	case r.Allocs > 0 && r.Predicted == r.Allocs:
		add("The model of the recorded allocator places all %s allocations of this file where they were.",
			units.Count(uint64(r.Allocs)))
	case r.Allocs > 0:
		add("The model of the recorded allocator places %s of %s allocations of this file where they were (%s).",
			units.Count(uint64(r.Predicted)), units.Count(uint64(r.Allocs)),
			units.Percent(float64(r.Predicted)/float64(r.Allocs)))
		if r.Stopped != "" {
			add("The rest was not judged: %s.", units.Printable(r.Stopped))
		}
	case r.Setup.Name == "":
		add("The file does not tell which allocator was recorded, nor its settings.")
	default:
		add("The file has no addresses, so it is not known how well the replay follows the recorded allocator.")
	}
	if r.Replayed != 0 {
		add("Replayed with the recorded settings this run holds %s at most, recorded are %s.", units.Bytes(r.Replayed),
			units.Bytes(r.Peak))
	}
}
