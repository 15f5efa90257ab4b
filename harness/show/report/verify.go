package report

import (
	"io"

	"github.com/vramyard/vramyard/harness/study/verify"
	"github.com/vramyard/vramyard/internal/units"
)

// Verification writes the result of verifying a strategy against a recording.
func Verification(w io.Writer, r *verify.Result) error {
	out := &lines{w: w}
	out.printf(`%s on %s, sha256 %.12s
%d of %d allocations predicted, and %d of %d new segments
opening state: %d live blocks, %s reserved
peak reserved: %s (%d bytes), recorded %s (%d bytes)
`, r.Strategy, units.Printable(r.Trace), r.TraceHash, r.Predicted, r.Allocs, r.PredictedSegments, r.Segments,
		r.OpeningBlocks, units.Bytes(r.OpeningBytes),
		units.Bytes(r.Reserved), uint64(r.Reserved), units.Bytes(r.Recorded), uint64(r.Recorded))
	if r.First != nil {
		out.printf("first disagreement: %v\n", r.First)
	}
	if r.UnknownPool > 0 {
		out.printf("%d of the %d that are not predicted lie, or would lie, in segments of unknown pools, "+
			"which may be private: they were reserved and released during the recording\n", r.UnknownPool, r.Allocs-r.Predicted)
	}
	if r.Inconsistent > 0 {
		out.printf("skipped as inconsistent: %d; the first: %s\n", r.Inconsistent, units.Printable(r.FirstInconsistency))
	}
	if r.Stopped != "" {
		out.printf("the rest was not compared: %s\n", units.Printable(r.Stopped))
	}
	return out.err
}
