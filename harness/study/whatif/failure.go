package whatif

import (
	"slices"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/study/postmortem"
)

// explainedAs is the number of replays charged for explaining a request: one to reach it, and one
// for each way to make room.
const explainedAs = 4

// Explained is the explanation of a failed request.
type Explained struct {
	Event int `json:"event"` // index of the request in the trace
	// "last": the last refusal of the recorded program; "first": the first failure of the replay
	// with the recorded settings
	Which string `json:"which"`
	Of    int    `json:"of_count"` // refusals of the recorded program, or of the replay
	// explanation from the recorded heap; absent: not in the file
	Recorded *postmortem.Report `json:"recorded,omitempty"`
	// outcome with the recorded settings on the card, in the replay
	Replayed *postmortem.Verdict `json:"replayed,omitempty"`
}

// Moment is the outcome of that request with another setting on the card.
type Moment struct {
	Outcome postmortem.Outcome `json:"outcome"`              // the outcome
	Cause   postmortem.Cause   `json:"cause,omitempty"`      // if refused: the cause
	Before  int                `json:"refused_before_count"` // earlier requests that ran out of memory
	Took    device.Size        `json:"taken_bytes"`          // additional bytes reserved for it
	Calls   uint64             `json:"device_calls"`         // driver calls it caused
}

// explain explains the failed request of the recording, or else of the replay with the recorded
// settings. Then it tests the request with the other settings, within the budget.
func (s *search) explain(w *SurveyedTrace) error {
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
			return nil // it exceeds this card, so it was measured on another one
		}
		x.Replayed, x.Event, event = v, v.Event, v.Event
	}
	s.Explained = x
	if event == postmortem.FirstOOM {
		return nil
	}
	var looked []int
	for i := range s.Runs {
		if i != recorded && s.Runs[i].Rejects == "" && s.pay() {
			looked = append(looked, i)
		}
	}
	s.enter(phaseExplain, len(looked))
	if x.Replayed != nil {
		s.Runs[recorded].AtFailure = momentOf(x.Replayed)
	}
	return sideBySide(len(looked), func(k int) error {
		i := looked[k]
		v, err := s.lookAt(i, event)
		if err == nil {
			s.Runs[i].AtFailure = momentOf(v)
		}
		s.over()
		s.showProgress()
		return err
	})
}

func (s *search) pay() bool {
	price := explainedAs * uint64(s.trace.Head().Events)
	if s.Budget != 0 && s.done.Load()+price > s.Budget {
		return false
	}
	s.done.Add(price)
	return true
}

func (s *search) lookAt(i, event int) (v *postmortem.Verdict, err error) {
	on := s.o.Device
	on.Capacity = s.Card
	err = s.pool.Each(1, s.trace, func(int) error {
		if err = s.ctx.Err(); err != nil {
			return err
		}
		v, err = postmortem.Replay(s.trace, s.Runs[i].setup.ForCapacity(s.Card), postmortem.Options{
			Event: event, FreeAt: s.FreeAt, Device: func() (device.Device, error) { return sim.New(on) },
		})
		return err
	})
	return v, err
}

func momentOf(v *postmortem.Verdict) *Moment {
	m := &Moment{Outcome: v.Outcome, Before: v.Before, Took: v.Took, Calls: v.Calls}
	if v.Report != nil {
		m.Cause = v.Report.Cause
	}
	return m
}
