package whatif

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/internal/units"
)

// Verdict is the kind of an answer.
type Verdict string

// The verdicts.
const (
	TooLittle Verdict = "too-little" // the live bytes alone exceed the card
	Carried   Verdict = "carried"    // the recorded settings complete the run in the replay
	Setting   Verdict = "setting"    // another setting of the framework completes it
	Pooling   Verdict = "pools"      // only other private pools than the recorded ones complete it
	Strategy  Verdict = "strategy"   // only allocators that the framework cannot select complete it
	None      Verdict = "none"       // nothing tried completes it
	NoCard    Verdict = "no-card"    // the card is unknown

	CannotTell Verdict = "cannot-tell" // the file lacks what an answer needs
	ByRelease  Verdict = "releases"    // the releases are compared, see [AcrossReleases]
)

// Answer is the outcome as text.
type Answer struct {
	Verdict     Verdict  `json:"verdict"`               // kind of answer
	Text        []string `json:"text"`                  // sentences, the answer first
	Recipe      []string `json:"recipe,omitempty"`      // Python code that records a file that can be answered
	Changes     []string `json:"changes,omitempty"`     // first differences of neighbouring releases, a text each
	Sure        []string `json:"how_sure"`              // sentences about the accuracy
	Label       string   `json:"label,omitempty"`       // of the recommended setting
	Environment []string `json:"environment,omitempty"` // variables to export for it
	Python      []string `json:"python,omitempty"`      // code that sets what no variable does
	// first release that reads Environment, if the recorded version is unknown
	Since  string   `json:"since,omitempty"`
	Before []string `json:"before,omitempty"` // variables to export for releases before Since
	// calls of the program for settings that hold between two marks
	Calls []setting.Call `json:"calls,omitempty"`
	Need  device.Size    `json:"need_bytes,omitempty"` // a sufficient capacity

	// other answers, for deployments with common constraints; absent: their needs are given
	Constraints []Constrained `json:"constraints,omitempty"`
	// sentences about the deployment; of settings with rules, the rules follow on a line each
	Permits []string `json:"permits,omitempty"`
}

// nearly is the inverse of the extra need accepted for a simpler setting: 1 %.
const nearly = 100

// closeMargin is the inverse of the share of a card below which free memory counts as little: 2 %.
const closeMargin = 50

// answerWriter builds an answer.
type answerWriter struct {
	*Result
	pools    bool
	allowed  func(*Point) bool // points that may be named, because the deployment permits them
	recorded *Point            // nil: the recorded settings are unknown
	chosen   *Point            // the recommended one, or nil
	card     string            // last card mentioned
	repooled string            // way to change private pools that is named, or ""
	a        Answer
}

// AnswerOf describes the outcome of a search. pools reports whether the trace assigns requests to
// private pools.
func AnswerOf(r *Result, pools bool) Answer {
	t := newAnswerWriter(r, pools)
	t.write()
	t.options()
	t.asleep()
	t.sure()
	t.permits()
	return t.a
}

func newAnswerWriter(r *Result, pools bool) *answerWriter {
	return &answerWriter{Result: r, pools: pools, recorded: r.recorded(), allowed: (*Point).Permitted}
}

// recorded returns the point of the recorded settings, or nil.
func (r *Result) recorded() *Point {
	if i := slices.IndexFunc(r.Runs, func(p Point) bool { return p.Recorded }); i >= 0 {
		return &r.Runs[i]
	}
	return nil
}

// keepsPools reports whether a point has private pools like the recorded allocator, if requests go
// to them: the savings of others are not real.
func (t *answerWriter) keepsPools(p *Point) bool {
	return !t.pools || t.recorded == nil || p.family() == t.recorded.family()
}

// losesPools reports whether a point is a setting of PyTorch without private pools, such as its
// backend cudaMallocAsync, although requests go to them. No answer names it.
func (t *answerWriter) losesPools(p *Point) bool {
	return t.pools && p != t.recorded && p.Export != nil && p.Export.Framework == pytorch && p.family() != cachingName
}

func (t *answerWriter) say(format string, args ...any) {
	t.a.Text = append(t.a.Text, fmt.Sprintf(format, args...))
}

func (t *answerWriter) write() {
	known := func(p *Point) bool { return p.Need() != 0 }
	completes := func(p *Point) bool { return p.Carried != nil && *p.Carried && known(p) }
	first := func(f func(*Point) bool) func(*Point) bool {
		return func(p *Point) bool { return f(p) && (t.Recorded.Framework == "" || t.ours(p)) && t.keepsPools(p) }
	}
	switch {
	case t.Cannot != "":
		t.refuse()
	case t.LowerBound > mostLive:
		t.a.Verdict = TooLittle
		t.say("None: the live bytes alone need %s, and there is no card of more than %s.", units.Bytes(t.LowerBound),
			units.Bytes(sim.Cards()[0].Memory))
		t.say("So no setting was tried.")
	case t.Card == 0:
		t.a.Verdict = NoCard
		t.preface()
		t.howSmall(t.best(first(known)), t.least(known))
	case t.Card < t.LowerBound:
		t.a.Verdict = TooLittle
		t.say("None: the live bytes alone need %s, and %s.", units.Bytes(t.LowerBound), t.cardHas())
		t.howSmall(nil, t.least(known))
	case t.recorded != nil && completes(t.recorded) && t.recorded.Permitted():
		t.a.Verdict = Carried
		t.preface()
		t.alreadyCarried()
		t.howSmall(t.best(first(completes)), t.least(completes))
		t.sharing()
	case t.best(first(completes)) != nil:
		t.a.Verdict = Setting
		if t.Recorded.Framework == "" {
			t.a.Verdict = Strategy
		}
		t.setting(t.best(first(completes)), t.least(completes))
	case t.bestPools(completes) != nil:
		t.a.Verdict = Pooling
		t.pooling(t.bestPools(completes), completes)
	case t.best(completes) != nil:
		t.a.Verdict = Strategy
		b := t.best(completes)
		t.choose(b)
		t.say("No setting of %s that was %s%s completes this run on %s. %s would: it %s.", t.Recorded.Framework,
			t.scope(), t.butBaseline(completes), t.cardName(), capital(t.name(b)), needs(b))
		t.how(b)
		t.tight(b)
		t.costs(b)
		t.fits(b)
	default:
		t.a.Verdict = None
		which := fmt.Sprintf("%d settings that were tried", t.Points)
		if t.scope() != tried {
			which = "permitted settings"
		}
		if i := slices.IndexFunc(t.Runs, func(p Point) bool {
			return p.Baseline && completes(&p) && p.Permitted()
		}); i >= 0 {
			t.say("None: of the %s, only the baseline %s completes this run on %s: it requests "+
				"every block from the device.", which, t.baseline(&t.Runs[i]), t.cardName())
		} else {
			t.say("None: none of the %s completes this run on %s.", which, t.cardName())
		}
		t.howSmall(t.best(first(known)), t.least(known))
	}
	t.pooled()
	t.constrain(first)
}

// preface describes a recorded failure that did not end the run, or its absence.
func (t *answerWriter) preface() {
	switch f := t.Recorded.Failure; {
	case f == nil:
		t.say("No failure is recorded.")
	case !f.Fatal:
		t.say("The program was refused memory %s and went on.", times(f.Count))
	case t.Card == 0:
		t.say("The recorded program found no memory for %s. The file lacks the card's capacity: name the card with --device.",
			units.Bytes(f.Size))
	}
}

// best returns the point accepted by f with the least need, or a simpler one with little more need;
// nil if f accepts none.
func (t *answerWriter) best(f func(*Point) bool) *Point { return t.easiest(f, nearly) }

// least returns the point accepted by f with the least need, or nil.
func (t *answerWriter) least(f func(*Point) bool) *Point { return t.easiest(f, math.MaxInt) }

// easiest returns the easiest of the points that f accepts whose need exceeds the least by at most
// 1/part. It never returns a baseline, a forbidden point, a point without the private pools, or a
// setting that the release lacks; nil if there is no point.
func (t *answerWriter) easiest(f func(*Point) bool, part device.Size) *Point {
	named := f
	f = func(p *Point) bool { return !p.Baseline && !t.losesPools(p) && !t.lacks(p) && t.allowed(p) && named(p) }
	var least device.Size
	for i := range t.Runs {
		if p := &t.Runs[i]; f(p) && (least == 0 || t.holds(p) < least) {
			least = t.holds(p)
		}
	}
	var best *Point
	for i := range t.Runs {
		p := &t.Runs[i]
		if f(p) && t.holds(p)-least <= least/part && (best == nil || easier(p, best)) {
			best = p
		}
	}
	return best
}

// easier reports whether a is preferable to b at nearly equal need: it changes fewer settings, or
// its driver calls take less time.
func easier(a, b *Point) bool {
	if a.Changes != b.Changes {
		return a.Changes < b.Changes
	}
	return a.DeviceTime < b.DeviceTime
}

func (t *answerWriter) choose(p *Point) {
	t.chosen = p
	t.a.Label, t.a.Need, t.a.Environment, t.a.Since, t.a.Before = p.Label, p.Need(), nil, "", nil
	t.a.Python, t.a.Calls = nil, nil
	if !t.ours(p) {
		return
	}
	t.a.Python, t.a.Calls = p.Export.Python, p.Export.Calls
	if t.a.Environment, t.a.Before = t.Recorded.exported(p.Export); t.Recorded.Version == "" {
		t.a.Since = p.Export.Since
	}
}

func (t *answerWriter) setting(b, least *Point) {
	b = t.shrunk(b)
	t.choose(b)
	verb := "completes"
	if t.ours(b) && len(b.environment())+len(b.Export.Calls) > 1 {
		verb = "complete"
	}
	if t.Recorded.Failure != nil {
		t.say("Yes: %s %s this run on %s.", t.name(b), verb, t.cardName())
	} else {
		t.say("%s %s this run on %s.", capital(t.name(b)), verb, t.cardName())
	}
	if held := t.held(); t.share(b) > 0 {
		t.beside(b)
	} else if held > b.Need() {
		t.say("It %s; %s were held when memory ran out, %s more.", needs(b), units.Bytes(held), units.Bytes(held-b.Need()))
	} else {
		t.say("It %s.", needs(b))
	}
	t.how(b)
	t.tight(b)
	t.costs(b)
	t.fits(b)
	t.smallest(b, least)
}

// how says how to use a strategy.
func (t *answerWriter) how(p *Point) {
	if text := t.use(p); text != "" {
		t.say("%s", text)
	}
}

// held returns the bytes reserved when the recorded program ran out of memory, or 0.
func (t *answerWriter) held() device.Size {
	if t.Recorded.Failure == nil {
		return 0
	}
	return t.Recorded.Failure.Reserved
}

// alreadyCarried reports that the recorded settings complete the run in the replay, whether the
// recorded program failed or not.
func (t *answerWriter) alreadyCarried() {
	p := t.recorded
	if f := t.Recorded.Failure; f != nil && f.Fatal && t.Card <= t.Recorded.Capacity {
		t.say("The replay does not fail: with %s this run completes on %s. So the cause of the "+
			"failure is not in the file, and the effect of other settings is unknown.", t.Recorded.Settings(), t.cardName())
		return
	}
	t.say("With %s the run completes on %s: it %s.", t.Recorded.Settings(), t.cardName(), needs(p))
	t.tight(p)
}

// howSmall describes the smallest sufficient capacity with the recorded settings, with other
// settings, and with any strategy.
func (t *answerWriter) howSmall(b, least *Point) {
	p := t.recorded
	switch {
	case p != nil && p.Need() != 0 && t.a.Verdict != Carried:
		t.say("With %s it %s.", t.Recorded.Settings(), needs(p))
		t.fits(p)
	case p != nil && p.Need() != 0:
		t.fits(p)
	}
	switch {
	case b == nil || b.Need() == 0:
	case p == nil || p.Need() == 0 || !p.Permitted():
		t.choose(b)
		t.say("%s %s.", capital(t.name(b)), needs(b))
		t.fits(b)
	case b == p || p.Need()-min(p.Need(), b.Need()) <= p.Need()/nearly:
		so := ""
		if t.open(p) {
			so = ", as far as was searched"
		}
		t.say("Nothing to gain from settings%s: none of %s that was %s needs noticeably less.", so, t.Recorded.Framework,
			t.scope())
		b = p
	default:
		t.choose(b)
		t.say("%s %s: %s less.", capital(t.name(b)), needs(b), units.Bytes(p.Need()-b.Need()))
		t.costs(b)
		t.fits(b)
	}
	if t.a.Verdict == TooLittle && least != nil && (p == nil || p.Need() == 0 || p.Need()-least.Need() > p.Need()/nearly) {
		t.choose(least)
		t.say("Of everything %s except the baseline, %s needs the least: %s.", t.scope(), t.name(least), amount(least))
		t.fits(least)
		return
	}
	if t.a.Verdict != TooLittle {
		t.smallest(b, least)
	}
}

// open reports whether some setting might need noticeably less than p: its minimum is not fully
// searched.
func (t *answerWriter) open(p *Point) bool {
	return slices.ContainsFunc(t.Runs, func(q Point) bool {
		if !t.ours(&q) || !q.Permitted() || q.CompletesAt == nil || q.MinCapacity != nil {
			return false
		}
		least := t.LowerBound
		if q.FailsAt != nil {
			least = max(least, *q.FailsAt)
		}
		return p.Need()-min(p.Need(), least) > p.Need()/nearly
	})
}

// smallest mentions the best strategy, if it needs noticeably less than setting b.
func (t *answerWriter) smallest(b, least *Point) {
	if least == nil || b == least {
		return
	}
	if b != nil && b.Need() != 0 && t.holds(b)-min(t.holds(b), t.holds(least)) <= t.holds(b)/nearly {
		return
	}
	t.say("Of everything %s except the baseline, %s needs the least: %s. The live bytes alone are %s.", t.scope(),
		t.name(least), amount(least), units.Bytes(t.LowerBound))
}

// costs describes the device calls of a setting, and of the recorded settings.
func (t *answerWriter) costs(b *Point) {
	calls, take := "device calls", "take"
	if b.DeviceCalls == 1 {
		calls, take = "device call", "takes"
	}
	t.say("It makes %s %s, which %s %s by the cost model.", units.Count(b.DeviceCalls), calls, take,
		units.Nanoseconds(b.DeviceTime))
	if p := t.recorded; p != nil && p != b {
		fail := ""
		if p.OOMs > 0 || p.setup.Preallocates && p.Fails() {
			fail = ", and fail"
		}
		t.say("%s make %s (%s)%s.", capital(t.Recorded.Settings()), units.Count(p.DeviceCalls),
			units.Nanoseconds(p.DeviceTime), fail)
	}
	if b.Permit == Slow {
		t.say("It is permitted %s.", t.Permit.Note(b))
	}
}

// contextReserve is device memory that the allocator never gets: the CUDA context and the code of
// libraries. docs/whatif.md has measurements.
const contextReserve = 512 * device.MiB

// context returns the bytes of a listed card that the allocator does not get.
func (r *Result) context() device.Size { return cmp.Or(r.Context, contextReserve) }

// fits names the smallest card with enough memory for a point and the context reserve.
func (t *answerWriter) fits(p *Point) {
	if t.Beside != nil {
		return // there are two programs on the card
	}
	cards := sim.Cards()
	for i := len(cards) - 1; i >= 0; i-- { // from the smallest card up
		c := cards[i]
		if c.Memory < t.room(p) {
			continue
		}
		if c.Name != t.card {
			t.card = c.Name
			t.say("With %s for the CUDA context and libraries, the smallest listed card large enough is the %s (%s).",
				units.Bytes(t.context()), c.Model, units.Bytes(c.Memory))
		}
		return
	}
	t.say("No card listed is large enough, with %s for the CUDA context and libraries: the largest is the %s (%s).",
		units.Bytes(t.context()), cards[0].Model, units.Bytes(cards[0].Memory))
}

// tight warns if the card leaves less than the context reserve, unless its capacity excludes it, as
// the recorded one does.
func (t *answerWriter) tight(p *Point) {
	if t.Context != 0 {
		return
	}
	if spare := t.spare(p); t.Card != t.Recorded.Capacity && spare < contextReserve {
		t.say("That is too tight: it leaves %s for the CUDA context and libraries, which take about %s.", units.Bytes(spare),
			units.Bytes(contextReserve))
	}
}

func (t *answerWriter) cardName() string {
	if t.Beside != nil {
		return fmt.Sprintf("the %s that %s leaves while it sleeps", units.Bytes(t.Card), t.Beside.Trace)
	}
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

func (t *answerWriter) cardHas() string {
	if t.Beside != nil {
		return fmt.Sprintf("%s leaves %s while it sleeps", t.Beside.Trace, units.Bytes(t.Card))
	}
	if t.Recorded.Capacity == t.Card {
		return "there were " + units.Bytes(t.Card)
	}
	return "the card has " + units.Bytes(t.Card)
}

func (p *Point) environment() []string {
	if p.Export == nil {
		return nil
	}
	return slices.Concat(p.Export.Environment, p.Export.Options)
}

// name names a point in a sentence. A setting of another framework is called a strategy; if the
// framework is unknown, both are given.
func (t *answerWriter) name(p *Point) string {
	strategy := "the strategy " + p.Label
	if p.Export == nil || t.Recorded.Framework != "" && !t.ours(p) {
		return strategy
	}
	environment, _ := t.Recorded.exported(p.Export)
	variables := strings.Join(slices.Concat(environment, p.Export.Options), " ")
	chosen := strings.Join(append([]string{variables}, callTexts(p.Export.Calls)...), ", then ")
	chosen = strings.TrimPrefix(chosen, ", then ")
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

// callTexts describes calls that change settings.
func callTexts(calls []setting.Call) (texts []string) {
	for _, c := range calls {
		texts = append(texts, fmt.Sprintf("%s from the mark %q", cmp.Or(c.Conf, "the defaults"), c.Mark))
	}
	return texts
}

// amount formats the need of a point, as an interval if the search has not finished.
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

// capital capitalises "the" at the start of a sentence; names of variables are kept.
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
