package workload

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vramyard/vramyard/harness/trace"
)

// Limits of a request log.
const (
	// MaxServingRequests is the maximum number of requests that are taken from a log. They take 64
	// MiB.
	MaxServingRequests = 1 << 22
	// servingSpan bounds the time between two requests, so that no sum overflows. Published logs
	// span four months.
	servingSpan = 366 * 24 * time.Hour
)

// ServingRequest is a row of a request log.
type ServingRequest struct {
	Arrival   time.Duration // since the first request
	Prompt    uint32        // tokens of the prompt
	Generated uint32        // tokens of the response
}

// ServingLog is a log of the requests to a language model.
type ServingLog struct {
	Format   string           // "azure" or "burstgpt"
	Requests []ServingRequest // by arrival
	Skipped  int              // rows without a prompt or a response, such as failed requests
}

// servingFormat names the columns that a format must have. Others are ignored.
type servingFormat struct {
	name      string
	arrival   string
	prompt    string
	generated string
	// time parses an arrival.
	time func(text string) (time.Time, error)
}

var servingFormats = []servingFormat{
	{"azure", "TIMESTAMP", "ContextTokens", "GeneratedTokens", parseStamp},
	{"burstgpt", "Timestamp", "Request tokens", "Response tokens", parseSeconds},
}

// ReadServingLog reads a log in the format that its header shows: the first limit requests, as far
// as they arrive within span of the first row; 0 is no limit. It fails if there is no request, or
// if there are more than [MaxServingRequests].
func ReadServingLog(l *trace.Lines, limit int, span time.Duration) (*ServingLog, error) {
	line, err := l.Next()
	if err != nil {
		return nil, err
	}
	r, err := newLogReader(string(line))
	if err != nil {
		return nil, l.ErrorAt(1, err)
	}
	for limit == 0 || len(r.log.Requests) < limit {
		if line, err = l.Next(); err != nil {
			return nil, err
		}
		if line == nil {
			break
		}
		if len(line) == 0 {
			continue
		}
		if err := r.row(string(line), span); err != nil {
			return nil, l.ErrorAt(l.Line(), err)
		}
	}
	all := r.log.Requests
	if len(all) == 0 {
		return nil, l.ErrorAt(0, fmt.Errorf("no request: all of the %d rows have no prompt or no response", r.log.Skipped))
	}
	slices.SortStableFunc(all, func(a, b ServingRequest) int { return cmp.Compare(a.Arrival, b.Arrival) })
	first := all[0].Arrival
	for i := range all {
		all[i].Arrival -= first
	}
	return &r.log, nil
}

// logReader reads the rows of a log.
type logReader struct {
	servingFormat
	columns [3]int // indexes of arrival, prompt and generated
	fields  int    // number of columns
	first   time.Time
	log     ServingLog
}

func newLogReader(header string) (*logReader, error) {
	have := strings.Split(header, ",")
	var wanted []string
	for _, f := range servingFormats {
		r := &logReader{servingFormat: f, fields: len(have), log: ServingLog{Format: f.name}}
		names := []string{f.arrival, f.prompt, f.generated}
		for i, name := range names {
			r.columns[i] = slices.Index(have, name)
		}
		if slices.Min(r.columns[:]) >= 0 {
			return r, nil
		}
		wanted = append(wanted, strings.Join(names, ","))
	}
	return nil, fmt.Errorf("header %.80q: want the columns %s", header, strings.Join(wanted, " or "))
}

// row reads a row, and keeps its request if it has a prompt and a response and arrives within the
// span.
func (r *logReader) row(line string, span time.Duration) error {
	fields := strings.Split(line, ",")
	if len(fields) != r.fields {
		return fmt.Errorf("row of %d columns: want %d, as in the header", len(fields), r.fields)
	}
	at, err := r.time(fields[r.columns[0]])
	if err != nil {
		return fmt.Errorf("%s %.40q: %w", r.arrival, fields[r.columns[0]], err)
	}
	if r.first.IsZero() {
		r.first = at
	}
	q := ServingRequest{Arrival: at.Sub(r.first)}
	if q.Arrival.Abs() > servingSpan {
		return fmt.Errorf("%s %.40q: want a time within %.0f days of the first request", r.arrival, fields[r.columns[0]],
			servingSpan.Hours()/24)
	}
	if q.Prompt, err = parseTokens(r.prompt, fields[r.columns[1]]); err != nil {
		return err
	}
	if q.Generated, err = parseTokens(r.generated, fields[r.columns[2]]); err != nil {
		return err
	}
	switch {
	case span != 0 && q.Arrival > span:
	case q.Prompt == 0 || q.Generated == 0:
		r.log.Skipped++
	case len(r.log.Requests) == MaxServingRequests:
		return fmt.Errorf("more than %d requests: want a limit of them, or of the time", MaxServingRequests)
	default:
		r.log.Requests = append(r.log.Requests, q)
	}
	return nil
}

// parseTokens parses a number of tokens.
func parseTokens(column, text string) (uint32, error) {
	n, err := strconv.ParseUint(text, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%s %.40q: want a number of tokens, at most %d", column, text, uint32(math.MaxUint32))
	}
	return uint32(n), nil
}

// parseStamp parses the date and time of Azure's logs: of 2023 without a time zone, of 2024 with
// one. Both may have a fraction of a second.
func parseStamp(text string) (time.Time, error) {
	for _, layout := range []string{time.DateTime, time.DateTime + "Z07:00"} {
		if t, err := time.Parse(layout, text); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("want a time such as 2023-11-16 18:15:46.6805900 or 2024-05-10 00:00:00.009930+00:00")
}

// parseSeconds parses BurstGPT's seconds since the start of the log.
func parseSeconds(text string) (time.Time, error) {
	const most = 1e9
	s, err := strconv.ParseFloat(text, 64)
	if err != nil || !(s >= 0 && s <= most) {
		return time.Time{}, fmt.Errorf("want seconds since the start, from 0 to %.0f", most)
	}
	return time.Unix(0, int64(math.Round(s*1e9))), nil
}
