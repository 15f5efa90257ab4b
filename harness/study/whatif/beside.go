package whatif

import (
	"context"
	"errors"
	"fmt"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/units"
)

// Beside is a program that sleeps on the card while the run in question is there.
type Beside struct {
	Trace    string      `json:"trace"`      // name of its trace
	Strategy string      `json:"strategy"`   // with which it was replayed
	Card     device.Size `json:"card_bytes"` // capacity of the card for both

	replay.SleepFigures
}

// Left returns the bytes of the card that the sleeping program leaves.
func (b *Beside) Left() device.Size { return b.Card - b.HeldAsleep }

var (
	errAwake      = errors.New("the program never sleeps: want a trace with pause lines")
	errNoneTagged = errors.New("no live block has a paused tag: want pause lines with the tags of blocks")
	errNoCard     = errors.New("neither file has the capacity of the card: name the card with --device")
	errAllIsHeld  = errors.New("nothing of the card is left")
)

// Sleeping replays a program that sleeps on a card of n bytes. It fails if the program does not
// complete, never sleeps, keeps all its memory, or leaves nothing; the device is one of o.
func Sleeping(ctx context.Context, src trace.Source, setup setting.Setup, n device.Size, o Options) (*Beside, error) {
	if n == 0 {
		return nil, errNoCard
	}
	p, err := replay.Prepare(ctx, src)
	if err != nil {
		return nil, err
	}
	o.Device.Capacity = n
	dev, err := sim.New(o.Device)
	if err != nil {
		return nil, err
	}
	res, err := p.Run(setup.ForCapacity(n), dev, replay.Options{FreeAt: o.FreeAt, StopAtOOM: true})
	switch {
	case err != nil:
		return nil, err
	case res.Failures() > 0:
		return nil, fmt.Errorf("with %s the program does not complete on %s", setup.Name, units.Bytes(n))
	case res.Sleep == nil:
		return nil, errAwake
	case res.Sleep.PeakAsleep == 0:
		return nil, errNoneTagged
	}
	b := &Beside{Trace: res.Trace, Strategy: setup.Name, Card: n, SleepFigures: *res.Sleep}
	if b.Left() == 0 {
		return nil, errAllIsHeld
	}
	return b, nil
}

// asleep describes the program beside the run, and what the run leaves of its part of the card.
func (t *answerWriter) asleep() {
	b := t.Beside
	if b == nil || t.Cannot != "" {
		return
	}
	t.say("With the strategy %s, %s holds at most %s of %s while %s of it sleep.", b.Strategy, b.Trace,
		units.Bytes(b.HeldAsleep), units.Bytes(b.Card), units.Bytes(b.PeakAsleep))
	p := t.chosen
	if p == nil {
		p = t.recorded
	}
	if p == nil || p.Need() == 0 {
		return
	}
	need := p.Need()
	difference, way := t.Card-min(t.Card, need), "more"
	if need > t.Card {
		difference, way = need-t.Card, "less"
	}
	t.say("The largest program that fits beside it needs %s, %s (%s) %s than this one.", units.Bytes(t.Card),
		units.Bytes(difference), units.Percent(float64(difference)/float64(need)), way)
}
