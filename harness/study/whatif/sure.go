package whatif

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/internal/units"
)

func (t *answerWriter) sure() {
	add := func(format string, args ...any) { t.a.Sure = append(t.a.Sure, fmt.Sprintf(format, args...)) }
	if t.Cannot != "" {
		return
	}
	t.margin(add)
	t.fidelity(add)
	t.peculiarity(add)
	switch {
	case t.a.Since != "" && t.a.Before == nil:
		add("The file does not have the version of %s. Releases before %s do not have these settings.",
			t.Recorded.Framework, t.a.Since)
	case t.a.Since != "":
		add("The file does not have the version of %s. Releases before %s may ignore the newer variable without a message.",
			t.Recorded.Framework, t.a.Since)
	}
	t.release(add)
	r := &t.Recorded
	if r.Opening > 0 {
		add("The recording begins with %s live allocations. The replay places them "+
			"without the holes between them, so the real need may be larger.", units.Count(uint64(r.Opening)))
	}
	if r.Inconsistencies > 0 {
		add("%s entries of the file are inconsistent; trace info lists them.", units.Count(uint64(r.Inconsistencies)))
	}
	if r.Pools > 0 && !t.pools {
		add("Private pools (CUDA graphs) are recorded but not replayed: the replay shares their memory, so the " +
			"real need may be larger.")
	}
	if t.pools {
		add("Private pools (CUDA graphs) are replayed. Strategies without private pools share their memory, so a graph " +
			"may need more than they show.")
	}
	t.hypothetical(add)
	if r.Streams > 1 {
		add("%d streams request memory. The recording shows which blocks they share only by the time "+
			"a free completed.", r.Streams)
	}
	if r.Rounded {
		add("Only the rounded size of the refused request is known; the request may have been smaller.")
	}
	switch {
	case t.Beside != nil:
		add("The CUDA context of each program stays on the card, %s asleep or not, and no trace has it.", t.Beside.Trace)
		add("A larger run may fragment more: how much larger its blocks may be, only its own trace shows.")
		add("What sleeps are the bytes of the paused blocks; if their segments are unmapped as a whole, more is left.")
	case r.Capacity != 0 && t.Card == r.Capacity:
		add("The capacity is the reserved plus the free memory at the time of the failure: %s. It excludes "+
			"the CUDA context and libraries.", units.Bytes(t.Card))
	default:
		add("Named cards leave %s for the CUDA context and libraries. NCCL and other programs may need more.",
			units.Bytes(t.context()))
	}
	if t.Budget != 0 {
		add("Minima are found by bisection, assuming that more memory never hurts. Every capacity tried from \"safe from\" " +
			"to 1.25 times it completes; --grid full tries more.")
	}
}

// margin warns if little of the card remains free.
func (t *answerWriter) margin(add func(string, ...any)) {
	need := t.a.Need
	if need == 0 && t.recorded != nil {
		need = t.recorded.Need()
	}
	if t.Card == 0 || need == 0 || need > t.Card || t.share(cmp.Or(t.chosen, t.recorded)) > 0 {
		return
	}
	if spare := t.Card - need; spare < t.Card/closeMargin {
		add("That is close: it leaves %s free, %s of the card.", units.Bytes(spare),
			units.Percent(float64(spare)/float64(t.Card)))
	}
}

func (t *answerWriter) fidelity(add func(string, ...any)) {
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
			add("The rest was not compared: %s.", units.Printable(r.Stopped))
		}
	case r.Setup.Name == "" && !t.mixed && r.unmodelled() != "":
		add("No strategy models the recorded settings, so they are not replayed: %s.", units.Printable(r.unmodelled()))
	case r.Setup.Name == "" && !t.mixed:
		add("The file records neither the allocator nor its settings.")
	case r.Presumed:
		add("The file does not have the settings of %s, so its defaults are assumed.", r.Framework)
	default:
		add("The file has no addresses, so the accuracy of the replay is unknown.")
	}
	if r.Replayed != 0 {
		add("With the recorded settings the replay reserves at most %s; the recorded peak is %s.", units.Bytes(r.Replayed),
			units.Bytes(r.Peak))
	}
}

// unmodelled returns why no strategy models the recorded settings, or the settings; "" if there are
// none.
func (r *Recorded) unmodelled() string {
	for _, u := range r.Unknown {
		if why, ok := strings.CutPrefix(u, UnknownSettings+": "); ok {
			return why
		}
	}
	return cmp.Or(strings.Join(r.Environment, " "), string(r.Config))
}

// release states the rules of the replays, if --torch gives the recorded settings other rules than
// the rest.
func (t *answerWriter) release(add func(string, ...any)) {
	if t.Permit == nil || t.Permit.needs.Torch == "" || t.recorded == nil {
		return
	}
	rules := func(p *Point) string { return strings.Trim(string(fieldsOf(p.setup)[rulesField]), `"`) }
	var others []string
	for i := range t.Runs {
		p := &t.Runs[i]
		if p.setup.Name == t.recorded.setup.Name && rules(p) != rules(t.recorded) && !slices.Contains(others, rules(p)) {
			others = append(others, rules(p))
		}
	}
	if len(others) > 0 {
		slices.Sort(others)
		add("The recorded settings are replayed under the rules %s of PyTorch, as far as the file shows them, "+
			"others under the rules %s for %s.", rules(t.recorded), strings.Join(others, " and "), t.Permit.needs.Torch)
	}
}

// peculiarity states the rules of a framework that the replays do not have.
func (t *answerWriter) peculiarity(add func(string, ...any)) {
	r := &t.Recorded
	if r.Limit != 0 {
		of := ""
		if t.Card != 0 {
			of = ", " + units.Percent(float64(r.Limit)/float64(t.Card)) + " of this card"
		}
		add("The recorded allocator had a limit of %s%s.", units.Bytes(r.Limit), of)
	}
	switch r.Framework {
	case jax:
		add("Releases of JAX that grow beyond the first 75 %% of the card by themselves may need no larger share.")
	case tensorflow:
		add("TensorFlow without per_process_gpu_memory_fraction leaves 225 to 1,800 MiB of the card to the libraries of " +
			"CUDA. The replays do too, unless the file has the capacity; TF_DEVICE_MIN_SYS_MEMORY_IN_MB may change that.")
	}
}
