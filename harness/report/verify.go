package report

import (
	"fmt"
	"io"

	"github.com/vramyard/vramyard/harness/verify"
)

// Verification writes what came of holding a strategy to a recording, in a few lines.
func Verification(w io.Writer, r *verify.Result) error {
	_, err := fmt.Fprintf(w, `%s on %s, sha256 %.12s
%d of %d allocations predicted, and %d of %d new segments
opening state: %d live blocks, %s reserved
peak reserved: %s (%d bytes), recorded %s (%d bytes)
`, r.Strategy, Printable(r.Trace), r.TraceHash, r.Predicted, r.Allocs, r.InSegments, r.Segments,
		r.OpeningBlocks, Bytes(r.OpeningBytes),
		Bytes(r.Reserved), uint64(r.Reserved), Bytes(r.Recorded), uint64(r.Recorded))
	if err == nil && r.First != nil {
		_, err = fmt.Fprintf(w, "first disagreement: %v\n", r.First)
	}
	if err == nil && r.Stopped != "" {
		_, err = fmt.Fprintf(w, "the rest was not looked at: %s\n", Printable(r.Stopped))
	}
	return err
}
