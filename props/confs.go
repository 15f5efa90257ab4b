package props

import (
	"errors"
	"slices"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/alloc/promise"
)

// ConfAnswer checks invariant I76: a change of settings that is legal succeeds, unless the device
// lacks what it needs. Any other is answered by alloc.ErrInvalidSettings.
func ConfAnswer(settings string, legal bool, err error) error {
	switch {
	case legal && err != nil && !errors.Is(err, alloc.ErrUnsupported):
		return violated(IConfAnswer, "the settings %q were answered by %q", settings, err)
	case !legal && !errors.Is(err, alloc.ErrInvalidSettings):
		return violated(IConfAnswer, "the settings %q are wrong and were answered by %v, want %q", settings, quoted(err),
			alloc.ErrInvalidSettings)
	}
	return nil
}

// configured judges a change of settings. From then on the promises of the new settings hold.
func (r *runner) configured(c *Call) error {
	r.outcome = mistake
	p := &r.subject.Promises
	if !r.powers.has(power.PowerConfigurable) || p.Changed == nil {
		return nil
	}
	next, legal := p.Changed(c.Conf)
	if err := r.judge(ConfAnswer(c.Conf, legal, r.answer.Err)); err != nil || r.answer.Err != nil {
		return err
	}
	r.outcome = configured
	r.confs = append(r.confs, c.Conf)
	r.promise(next)
	return nil
}

// promise replaces the promises of the subject. A wrapper weakens the new ones too.
func (r *runner) promise(p promise.Set) {
	s := *r.subject
	p.Except = slices.Concat(p.Except, r.initial.Promises.Except)
	p.ExactPlacer = p.ExactPlacer && r.initial.Promises.ExactPlacer
	s.Promises = p
	r.subject, r.except = &s, s.exceptions()
}

// changes reports whether a sequence changes settings.
func changes(seq Sequence) bool {
	return slices.ContainsFunc(seq, func(o Op) bool { return o.Kind == OpConf })
}
