package whatif

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/internal/units"
)

// explainedAs is how many replays the look at one request is charged for: one to get there, and one for
// each way to make room that is tried.
const explainedAs = 4

// Explained is a request that found no memory, explained.
type Explained struct {
	Event    int                 `json:"event"`              // the request, by its number in the trace
	Which    string              `json:"which"`              // "last": the last request that the recorded program was refused; "first": the first that the replay of the recorded settings is refused
	Of       int                 `json:"of_count"`           // refusals of the recorded program, or of that replay
	Recorded *postmortem.Report  `json:"recorded,omitempty"` // why, by the recorded heap; absent: the file does not have it
	Replayed *postmortem.Verdict `json:"replayed,omitempty"` // what the recorded settings do with it on the card, in the replay
}

// Moment is what became of that request with another setting, on the card.
type Moment struct {
	Outcome postmortem.Outcome `json:"outcome"`              // granted, refused, or why neither
	Cause   postmortem.Cause   `json:"cause,omitempty"`      // refused: why, in a word
	Before  int                `json:"refused_before_count"` // requests before it that found no memory
	Took    device.Size        `json:"taken_bytes"`          // held more afterwards
	Calls   uint64             `json:"device_calls"`         // calls to the device on the way
}

// explain looks at the request that found no memory: in the recording, or else in the replay of the
// recorded settings. Then at what the other settings do with it, as far as the budget goes.
func (s *search) explain(w *Wanted) error {
	recorded := slices.IndexFunc(s.Runs, func(p Point) bool { return p.Recorded })
	event := postmortem.FirstOOM
	if w.Refusals.Count > 0 {
		event = w.Refusals.LastAt
	}
	if s.Card == 0 || event == postmortem.FirstOOM && (recorded < 0 || s.Runs[recorded].OOMs == 0) {
		return nil
	}
	x := &Explained{Event: event, Which: "last", Of: w.Refusals.Count, Recorded: s.Recorded.Explained}
	if event == postmortem.FirstOOM {
		x.Which, x.Of = "first", int(s.Runs[recorded].OOMs)
	}
	if recorded >= 0 && s.pay() {
		v, err := s.lookAt(recorded, event)
		if err != nil {
			return err
		}
		if event == postmortem.FirstOOM && v.Outcome == postmortem.NoOOM {
			return nil // on this card it fails because it does not fit at all, and was measured on another
		}
		x.Replayed, x.Event, event = v, v.Event, v.Event
	}
	s.Explained = x
	if event == postmortem.FirstOOM {
		return nil
	}
	var looked []int
	for i := range s.Runs {
		if i != recorded && s.pay() {
			looked = append(looked, i)
		}
	}
	s.enter(phaseExplain, len(looked))
	return s.eachPoint(func(i int) error {
		if i == recorded && x.Replayed != nil {
			s.Runs[i].AtFailure = momentOf(x.Replayed)
		}
		if !slices.Contains(looked, i) {
			return nil
		}
		v, err := s.lookAt(i, event)
		if err == nil {
			s.Runs[i].AtFailure = momentOf(v)
		}
		s.over()
		s.tell()
		return err
	})
}

// pay charges the look at a request, if the budget has as much.
func (s *search) pay() bool {
	price := explainedAs * uint64(s.trace.Head().Events)
	if s.Budget != 0 && s.done.Load()+price > s.Budget {
		return false
	}
	s.done.Add(price)
	return true
}

// lookAt returns what a setting does with a request on the card.
func (s *search) lookAt(i, event int) (v *postmortem.Verdict, err error) {
	on := s.o.Device
	on.Capacity = s.Card
	s.pool.Each(1, s.trace, func(int) {
		if err = s.ctx.Err(); err != nil {
			return
		}
		v, err = postmortem.Replay(s.trace, s.Runs[i].setup.ForCapacity(s.Card), postmortem.Options{
			Event: event, FreeAt: s.FreeAt, Device: func() (device.Device, error) { return sim.New(on) },
		})
	})
	return v, err
}

// momentOf keeps of a verdict what is told of every setting.
func momentOf(v *postmortem.Verdict) *Moment {
	m := &Moment{Outcome: v.Outcome, Before: v.Before, Took: v.Took, Calls: v.Calls}
	if v.Report != nil {
		m.Cause = v.Report.Cause
	}
	return m
}

// writeFailure writes why the request failed, and what the other settings did with it, in lines of at most so many columns.
func (r *Result) writeFailure(w io.Writer, width int) error {
	x := r.Explained
	if x == nil {
		return nil
	}
	why, where := x.Recorded, "in the recording"
	if why == nil && x.Replayed != nil {
		why, where = x.Replayed.Report, "in the replay of the recorded settings"
	}
	if why != nil {
		if _, err := fmt.Fprintf(w, "The %s, at event %d, %s:\n\n", postmortem.WhichOf(x.Which, x.Of), x.Event, where); err != nil {
			return err
		}
		if err := why.WriteText(w); err != nil {
			return err
		}
	}
	_, err := io.WriteString(w, r.atFailure(width))
	return err
}

// atFailure lists what became of the request with each setting, in lines of at most so many columns.
func (r *Result) atFailure(width int) string {
	var groups []string
	labels := map[string][]string{}
	for i := range r.Runs {
		p := &r.Runs[i]
		if p.AtFailure == nil {
			continue
		}
		g := p.AtFailure.words()
		if labels[g] == nil {
			groups = append(groups, g)
		}
		labels[g] = append(labels[g], p.Label)
	}
	if len(groups) == 0 {
		return ""
	}
	slices.Sort(groups) // what is granted comes before what is refused
	var b strings.Builder
	fmt.Fprintf(&b, "\nWith other settings that request (event %d) would have been:\n", r.Explained.Event)
	for _, g := range groups {
		wrap(&b, width, "- ", g+": "+strings.Join(labels[g], "; "))
	}
	b.WriteString("\n")
	return b.String()
}

// words says what became of a request.
func (m *Moment) words() string {
	text := string(m.Outcome)
	switch {
	case m.Cause != "":
		text += ", " + string(m.Cause)
	case m.Before > 0:
	case m.Outcome == postmortem.Granted && m.Took > 0:
		text += ", with " + units.Bytes(m.Took) + " more from the device"
	case m.Outcome == postmortem.Granted:
		text += ", from what was held"
	}
	if m.Before > 0 {
		text += ", after others were refused"
	}
	return text
}
