package whatif

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/units"
)

// Verdict says what kind of answer there is.
type Verdict string

// The verdicts.
const (
	TooLittle Verdict = "too-little" // the live bytes alone need more than the card has
	Carried   Verdict = "carried"    // the recorded settings carry the run, by the replay
	Setting   Verdict = "setting"    // another setting of the framework does
	Strategy  Verdict = "strategy"   // only allocators do that no setting chooses
	None      Verdict = "none"       // nothing that was tried does
	NoCard    Verdict = "no-card"    // which card is meant is not known

	CannotTell Verdict = "cannot-tell" // the file does not have what an answer needs
)

// Answer is the outcome in words.
type Answer struct {
	Verdict     Verdict  `json:"verdict"`               // what kind of answer it is
	Text        []string `json:"text"`                  // sentences, the answer first
	Recipe      []string `json:"recipe,omitempty"`      // lines of Python that record a file with an answer
	Sure        []string `json:"how_sure"`              // sentences about how far it can be trusted
	Label       string   `json:"label,omitempty"`       // of the setting that is answered with
	Environment []string `json:"environment,omitempty"` // to export for it
	// first release of the framework that reads Environment, if the recorded one is unknown
	Since  string      `json:"since,omitempty"`
	Before []string    `json:"before,omitempty"`     // to export instead for releases before Since
	Need   device.Size `json:"need_bytes,omitempty"` // capacity with which it completes
}

// nearly is how much more than the best a setting may need that is simpler: one per cent.
const nearly = 100

// closeMargin is the share of a card below which what is to spare is little: two per cent.
const closeMargin = 50

// teller puts an answer together.
type teller struct {
	*Result
	pools    bool
	recorded *Point // nil if the recorded settings are not known
	card     string // listed card that was named last
	a        Answer
}

// Tell says in words what a search has found. pools says that the trace itself tells which requests
// go to private pools.
func Tell(r *Result, pools bool) Answer {
	t := teller{Result: r, pools: pools}
	for i := range r.Runs {
		if r.Runs[i].Recorded {
			t.recorded = &r.Runs[i]
		}
	}
	t.tell()
	t.sure()
	return t.a
}

func (t *teller) say(format string, args ...any) {
	t.a.Text = append(t.a.Text, fmt.Sprintf(format, args...))
}

func (t *teller) tell() {
	known := func(p *Point) bool { return p.Need() != 0 }
	carries := func(p *Point) bool { return p.Carried != nil && *p.Carried && known(p) }
	first := func(f func(*Point) bool) func(*Point) bool {
		return func(p *Point) bool { return f(p) && t.candidate(p) }
	}
	switch {
	case t.Cannot != "":
		t.refuse()
	case t.LowerBound > mostLive:
		t.a.Verdict = TooLittle
		t.say("None: the live bytes alone need %s, and there is no card of more than %s.", units.Bytes(t.LowerBound),
			units.Bytes(sim.Cards()[0].Memory))
		t.say("So nothing was tried.")
	case t.Card == 0:
		t.a.Verdict = NoCard
		t.preface()
		t.howSmall(t.best(first(known)), t.least(known))
	case t.Card < t.LowerBound:
		t.a.Verdict = TooLittle
		t.say("None: the live bytes alone need %s, and %s.", units.Bytes(t.LowerBound), t.cardHas())
		t.howSmall(nil, t.least(known))
	case t.recorded != nil && carries(t.recorded):
		t.a.Verdict = Carried
		t.preface()
		t.alreadyCarried()
		t.howSmall(t.best(first(carries)), t.least(carries))
	case t.best(first(carries)) != nil:
		t.a.Verdict = Setting
		if t.Recorded.Framework == "" {
			t.a.Verdict = Strategy
		}
		t.setting(t.best(first(carries)), t.least(carries))
	case t.best(carries) != nil:
		t.a.Verdict = Strategy
		b := t.best(carries)
		t.choose(b)
		t.say("No setting of %s that was tried carries this run on %s. %s would: it %s.", t.Recorded.Framework, t.cardName(),
			capital(t.name(b)), needs(b))
		t.tight(b)
		t.costs(b)
		t.fits(b)
	default:
		t.a.Verdict = None
		if i := slices.IndexFunc(t.Runs, func(p Point) bool { return p.Baseline && carries(&p) }); i >= 0 {
			t.say("None: of the %d settings that were tried only %s, the baseline, carries this run on %s.", t.Points,
				t.Runs[i].Label, t.cardName())
		} else {
			t.say("None: none of the %d settings that were tried carries this run on %s.", t.Points, t.cardName())
		}
		t.howSmall(t.best(first(known)), t.least(known))
	}
}

// preface says what the recording has of a failure, if nothing else will.
func (t *teller) preface() {
	switch f := t.Recorded.Failure; {
	case f == nil:
		t.say("No failure is recorded.")
	case !f.Fatal:
		t.say("The program was refused memory %s and went on.", times(f.Count))
	case t.Card == 0:
		t.say("The recorded program found no memory for %s. The file does not tell how large the card is: --device does.",
			units.Bytes(f.Size))
	}
}

// best returns the point that needs least of those that f names, or one that is simpler and needs
// hardly more; nil if there is none.
func (t *teller) best(f func(*Point) bool) *Point { return t.easiest(f, nearly) }

// least returns the point that needs least of those that f names, nil if there is none.
func (t *teller) least(f func(*Point) bool) *Point { return t.easiest(f, math.MaxInt) }

// easiest returns the easiest of the points that f names and that need at most one part in so many
// more than the one that needs least; nil if there is none. It never returns a baseline.
func (t *teller) easiest(f func(*Point) bool, part device.Size) *Point {
	named := f
	f = func(p *Point) bool { return !p.Baseline && named(p) }
	var least device.Size
	for i := range t.Runs {
		if p := &t.Runs[i]; f(p) && (least == 0 || p.Need() < least) {
			least = p.Need()
		}
	}
	var best *Point
	for i := range t.Runs {
		p := &t.Runs[i]
		if f(p) && p.Need()-least <= least/part && (best == nil || easier(p, best)) {
			best = p
		}
	}
	return best
}

// easier reports whether one of two points that need nearly the same is to be preferred: it changes
// less, or its calls to the device take less time.
func easier(a, b *Point) bool {
	if a.Changes != b.Changes {
		return a.Changes < b.Changes
	}
	return a.DeviceTime < b.DeviceTime
}

func (t *teller) choose(p *Point) {
	t.a.Label, t.a.Need, t.a.Environment, t.a.Since, t.a.Before = p.Label, p.Need(), nil, "", nil
	if !t.ours(p) {
		return
	}
	if t.a.Environment, t.a.Before = t.Recorded.exported(p.Export); t.Recorded.Version == "" {
		t.a.Since = p.Export.Since
	}
}

func (t *teller) setting(b, least *Point) {
	t.choose(b)
	verb := "carries"
	if t.ours(b) && len(b.environment()) > 1 {
		verb = "carry"
	}
	if t.Recorded.Failure != nil {
		t.say("Yes: %s %s this run on %s.", t.name(b), verb, t.cardName())
	} else {
		t.say("%s %s this run on %s.", capital(t.name(b)), verb, t.cardName())
	}
	if held := t.held(); held > b.Need() {
		t.say("It %s; %s were held when memory ran out, %s more.", needs(b), units.Bytes(held), units.Bytes(held-b.Need()))
	} else {
		t.say("It %s.", needs(b))
	}
	t.tight(b)
	t.costs(b)
	t.fits(b)
	t.elsewhere(b, least)
}

// held returns the bytes that the recorded program held when it was refused memory, 0 if it was
// not.
func (t *teller) held() device.Size {
	if t.Recorded.Failure == nil {
		return 0
	}
	return t.Recorded.Failure.Reserved
}

// alreadyCarried says that the recorded settings carry the run, and what that means if they did
// not.
func (t *teller) alreadyCarried() {
	p := t.recorded
	if f := t.Recorded.Failure; f != nil && f.Fatal && t.Card <= t.Recorded.Capacity {
		t.say("The replay does not fail: with the recorded settings this run completes on %s. So what it died of is not in "+
			"the file, and what another setting would have done cannot be told from it.", t.cardName())
		return
	}
	t.say("With the recorded settings the run completes on %s: it %s.", t.cardName(), needs(p))
	t.tight(p)
}

// howSmall says with how little the run can do: recorded, with another setting, with any strategy.
func (t *teller) howSmall(b, least *Point) {
	p := t.recorded
	switch {
	case p != nil && p.Need() != 0 && t.a.Verdict != Carried:
		t.say("With the recorded settings it %s.", needs(p))
		t.fits(p)
	case p != nil && p.Need() != 0:
		t.fits(p)
	}
	switch {
	case b == nil || b.Need() == 0:
	case p == nil || p.Need() == 0:
		t.choose(b)
		t.say("%s %s.", capital(t.name(b)), needs(b))
		t.fits(b)
	case b == p || p.Need()-min(p.Need(), b.Need()) <= p.Need()/nearly:
		so := ""
		if t.open(p) {
			so = ", as far as was searched"
		}
		t.say("Nothing to gain from settings%s: none of %s that was tried needs noticeably less.", so, t.Recorded.Framework)
		b = p
	default:
		t.choose(b)
		t.say("%s %s: %s less.", capital(t.name(b)), needs(b), units.Bytes(p.Need()-b.Need()))
		t.costs(b)
		t.fits(b)
	}
	if t.a.Verdict == TooLittle && least != nil && (p == nil || p.Need() == 0 || p.Need()-least.Need() > p.Need()/nearly) {
		t.choose(least)
		t.say("Of all that was tried %s needs least: %s.", t.name(least), amount(least))
		t.fits(least)
		return
	}
	if t.a.Verdict != TooLittle {
		t.elsewhere(b, least)
	}
}

// open reports whether a setting may still need noticeably less than a point does: its minimum was
// not searched to the end.
func (t *teller) open(p *Point) bool {
	return slices.ContainsFunc(t.Runs, func(q Point) bool {
		if !t.ours(&q) || q.CompletesAt == nil || q.MinCapacity != nil {
			return false
		}
		least := t.LowerBound
		if q.FailsAt != nil {
			least = max(least, *q.FailsAt)
		}
		return p.Need()-min(p.Need(), least) > p.Need()/nearly
	})
}

// elsewhere says what the best strategy needs, if that is less than a setting does.
func (t *teller) elsewhere(b, least *Point) {
	if least == nil || b == least || b != nil && b.Need() != 0 && b.Need()-min(b.Need(), least.Need()) <= b.Need()/nearly {
		return
	}
	t.say("Of all that was tried %s needs least: %s, where the live bytes alone are %s.", t.name(least), amount(least),
		units.Bytes(t.LowerBound))
}

// costs says what a setting costs in calls to the device.
func (t *teller) costs(b *Point) {
	const model = "by the cost model"
	if p := t.recorded; p != nil && p != b {
		fail := ""
		if p.OOMs > 0 {
			fail = ", which fail,"
		}
		t.say("It makes %s calls to the device, %s %s, where the recorded settings%s make %s, %s.",
			units.Count(b.DeviceCalls),
			units.Nanoseconds(b.DeviceTime), model, fail, units.Count(p.DeviceCalls), units.Nanoseconds(p.DeviceTime))
		return
	}
	t.say("It makes %s calls to the device, %s %s.", units.Count(b.DeviceCalls), units.Nanoseconds(b.DeviceTime), model)
}

// contextReserve is the memory of a card that the allocator never gets: the CUDA context and the
// code of libraries. docs/whatif.md has the measurements.
const contextReserve = 512 * device.MiB

// fits names the smallest card that has what a point needs, and room for the CUDA context and
// libraries.
func (t *teller) fits(p *Point) {
	cards := sim.Cards()
	for i := len(cards) - 1; i >= 0; i-- { // the smallest is the last
		c := cards[i]
		if c.Memory < p.Need()+contextReserve {
			continue
		}
		if c.Name != t.card {
			t.card = c.Name
			t.say("With %s for the CUDA context and libraries, the smallest listed card that has so much is the %s (%s).",
				units.Bytes(contextReserve), c.Model, units.Bytes(c.Memory))
		}
		return
	}
	t.say("No card listed has so much, with %s for the CUDA context and libraries: the largest is the %s (%s).",
		units.Bytes(contextReserve), cards[0].Model, units.Bytes(cards[0].Memory))
}

// tight says that a card that carries the run leaves too little for the CUDA context and libraries.
// On the recorded card what they took is not counted.
func (t *teller) tight(p *Point) {
	if spare := t.Card - min(t.Card, p.Need()); t.Card != t.Recorded.Capacity && spare < contextReserve {
		t.say("That is too tight: it leaves %s for the CUDA context and libraries, which take about %s.", units.Bytes(spare),
			units.Bytes(contextReserve))
	}
}

func (t *teller) cardName() string {
	for _, c := range sim.Cards() {
		if c.Memory == t.Card {
			return fmt.Sprintf("the %s (%s)", c.Model, units.Bytes(t.Card))
		}
	}
	if t.Recorded.Capacity == t.Card {
		return "the same card (" + units.Bytes(t.Card) + ")"
	}
	return "a card of " + units.Bytes(t.Card)
}

// cardHas says how much the card has.
func (t *teller) cardHas() string {
	if t.Recorded.Capacity == t.Card {
		return "there were " + units.Bytes(t.Card)
	}
	return "the card has " + units.Bytes(t.Card)
}

func (p *Point) environment() []string {
	if p.Export == nil {
		return nil
	}
	return p.Export.Environment
}

// name names a point in a sentence. Settings of another framework are a strategy to users of the
// recorded one; of an unknown framework both are named.
func (t *teller) name(p *Point) string {
	strategy := "the strategy " + p.Label
	if p.Export == nil || t.Recorded.Framework != "" && !t.ours(p) {
		return strategy
	}
	environment, _ := t.Recorded.exported(p.Export)
	chosen := strings.Join(environment, " ")
	switch {
	case !t.ours(p) && chosen == "":
		return strategy + " (" + p.Export.Framework + " without any setting)"
	case !t.ours(p):
		return strategy + " (under " + p.Export.Framework + ": " + chosen + ")"
	case chosen == "":
		return p.Export.Framework + " without any setting"
	}
	return chosen
}

// amount says what a point needs, as far as it was searched.
func amount(p *Point) string {
	switch {
	case p.MinCapacity != nil:
		return units.Bytes(*p.MinCapacity)
	case p.FailsAt != nil:
		return fmt.Sprintf("at most %s, and more than %s", units.Bytes(p.Need()), units.Bytes(*p.FailsAt))
	}
	return "at most " + units.Bytes(p.Need())
}

func needs(p *Point) string { return "needs " + amount(p) }

// capital begins a sentence; names of variables stay as they are.
func capital(s string) string {
	if strings.HasPrefix(s, "the ") {
		return "T" + s[1:]
	}
	return s
}

func times(n int) string {
	switch n {
	case 1:
		return "once"
	case 2:
		return "twice"
	}
	return units.Count(uint64(n)) + " times"
}
