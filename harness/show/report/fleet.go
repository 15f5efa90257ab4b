package report

import (
	"fmt"
	"io"
	"strings"

	"github.com/vramyard/vramyard/harness/study/compare"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/units"
)

// Fleet writes which rank decides the card, the ranks, the answer for all of them, and all settings
// tried.
func Fleet(w io.Writer, f *whatif.Fleet) error {
	var b strings.Builder
	width := Columns(w, textWidth)
	if len(f.Text) > 0 {
		wrap(&b, width, "", strings.Join(f.Text, " "))
		b.WriteString("\n")
	}
	ranks := FleetSheet(f)
	fmt.Fprintf(&b, "%s\n", ranks.Terminal(w))
	for i := range f.Ranks {
		if r := &f.Ranks[i]; r.Result.Cannot != "" && len(f.Ranks) > 1 {
			wrap(&b, width, "  ", r.Name+" cannot answer: "+r.Result.Cannot+".")
		}
	}
	if len(f.Ranks) > 1 {
		b.WriteString("\nFor all ranks:\n\n")
	} else {
		b.WriteString("\n")
	}
	if err := answerText(w, &b, f.All, width); err != nil {
		return err
	}
	if len(f.All.Runs) > 0 {
		whatIfTable(w, &b, f.All, width)
	}
	_, err := io.WriteString(w, strings.TrimRight(b.String(), "\n")+"\n")
	return err
}

// FleetSheet returns the table of the ranks.
func FleetSheet(f *whatif.Fleet) Sheet {
	ranks := make([]*whatif.Rank, len(f.Ranks))
	for i := range ranks {
		ranks[i] = &f.Ranks[i]
	}
	known := func(c ColumnOf[*whatif.Rank]) ColumnOf[*whatif.Rank] {
		cell := c.Cell
		c.Cell = func(r *whatif.Rank) Cell {
			if r.Need == 0 {
				return missingCell()
			}
			return cell(r)
		}
		return c
	}
	return NewSheet("Ranks", []ColumnOf[*whatif.Rank]{
		Texts("rank", "", func(r *whatif.Rank) string { return r.Name }),
		known(figures("need", "smallest capacity that suffices, with the setting", func(r *whatif.Rank) Cell {
			return bytesCell(r.Need)
		})),
		figures("live", "peak of the live bytes", func(r *whatif.Rank) Cell { return bytesCell(r.Live()) }),
		known(figures("rest", "need beyond the live bytes: rounding and fragmentation", func(r *whatif.Rank) Cell {
			return bytesCell(r.Rest())
		})),
		figures("recorded peak", "peak of reserved bytes in the recording", func(r *whatif.Rank) Cell {
			if r.Result.Recorded.Peak == 0 {
				return missingCell()
			}
			return bytesCell(r.Result.Recorded.Peak)
		}),
		figures("on the card", "outcome on the card", func(r *whatif.Rank) Cell { return carriedCell(r.Carried) }),
		Texts("notes", "", func(r *whatif.Rank) string { return rankNotes(f, r) }),
	}, ranks)
}

// rankNotes returns the notes of a rank.
func rankNotes(f *whatif.Fleet, r *whatif.Rank) string {
	var notes []string
	if r.Name == f.Decides && len(f.Ranks) > 1 {
		notes = append(notes, "needs most")
	}
	if r.Result.Cannot != "" {
		notes = append(notes, "cannot answer")
	}
	if r.Need != 0 && r.Fails != 0 && r.Need-r.Fails > compare.Grid {
		notes = append(notes, "need > "+units.Bytes(r.Fails))
	}
	return strings.Join(notes, ", ")
}
