package check_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/props"
	"github.com/vramyard/vramyard/props/check"
	"github.com/vramyard/vramyard/props/planted"
	"github.com/vramyard/vramyard/props/planted/bugs"
	"github.com/vramyard/vramyard/strategies"
)

// shown are bugs that corrupt memory soon. Most of the others are found by arithmetic before
// they do, or waste memory only; some would run for ever if arithmetic did not stop them.
var shown = []planted.ID{
	"addrmap/stale-entry", "bfc/joins-apart", "bfc/refusal-takes-live", "blaze/doubles-powers", "blaze/grants-live-again",
	"blaze/left-by-request-class", "buddy/grant-clears-below", "buddy/oldest-region-noted",
	"cells/before-stays-full", "cells/freed-twice", "cells/inner-address", "sizemap/stale-entry", "slab/interior-free",
}

// TestContentsAloneFindBugs looks for bugs that arithmetic finds, by nothing but what is in the
// memory.
func TestContentsAloneFindBugs(t *testing.T) {
	needsBugs(t)
	all := bugs.All()
	for _, id := range shown {
		t.Run(string(id), func(t *testing.T) {
			i := slices.IndexFunc(all, func(b bugs.Bug) bool { return b.ID == id })
			require.NotEqual(t, -1, i, "there is no such bug")
			s, err := check.Plantable(strategies.All(), all[i])
			require.NoError(t, err)
			o := props.Options{Sequences: 10, Seed: 1, Tries: 1}
			_, err = props.Verify(s.ByContents(), o)
			require.NoError(t, err, "without the bug")
			planted.Set(id)
			defer planted.Set(planted.None)
			_, err = props.Verify(s.ByContents(), o)
			var v *props.Violation
			require.ErrorAs(t, err, &v)
			require.Equal(t, props.IContents, v.Number, "%v", v)
		})
	}
}
