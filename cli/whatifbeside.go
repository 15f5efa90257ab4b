package cli

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/harness/study/whatif"
)

// errBesideReleases refuses two questions at once.
var errBesideReleases = errors.New("answers another question than --across-releases: want one of the two")

// addBeside replays the program that sleeps beside a run, and leaves the rest of the card to the
// run.
func (f *whatifFlags) addBeside(cmd *cobra.Command, rec *whatif.Recorded, o *whatif.Options) error {
	if f.beside == "" {
		return nil
	}
	other := *f
	other.source.Part, other.marks, other.deployment = "", nil, whatif.Needs{} // they are of the run
	src, sleeps, err := other.open(cmd, f.beside)
	if err != nil {
		return err
	}
	if sleeps.Setup.Name == "" {
		if sleeps.Setup, err = f.catalogue.Lookup(cachingName, nil); err != nil {
			return err
		}
	}
	card := cmp.Or(o.Card, rec.Capacity, sleeps.Capacity)
	if o.Beside, err = whatif.Sleeping(cmd.Context(), src, sleeps.Setup, card, *o); err != nil {
		return fmt.Errorf("%s: --beside: %w", f.beside, err)
	}
	o.Card = o.Beside.Left()
	return nil
}
