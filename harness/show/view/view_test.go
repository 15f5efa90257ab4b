package view_test

import (
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/strategies"
)

// sample returns a trace with a number of events that ends in a failure on a small device.
func sample(t *testing.T, events int) *trace.Trace {
	t.Helper()
	b := trace.NewBuilder(trace.Header{Name: "sample", Format: "text", Hash: "5a"})
	for i := range uint64(events) {
		e := trace.Event{Kind: trace.Alloc, ID: i + 1, Size: device.Size(1<<12 + i%7<<14), Time: trace.NoTime}
		if i%2 == 1 && i > 64 {
			e = trace.Event{Kind: trace.Free, ID: i - 64, Time: trace.NoTime}
		}
		require.NoError(t, b.Add(e))
	}
	return b.Trace()
}

func wanted(t *testing.T, names ...string) []view.RunSpec {
	t.Helper()
	list := make([]view.RunSpec, len(names))
	for i, name := range names {
		s, err := strategies.All().Lookup(name, nil)
		require.NoError(t, err)
		on := sim.Config{Capacity: 32 * device.MiB}
		list[i] = view.RunSpec{Setup: s.ForCapacity(on.Capacity), Device: on}
	}
	return list
}

// served is a running server with the function that stops it.
type served struct {
	*view.Server
	at   string // scheme and address
	stop func() error
}

// serve runs a server of documents.
func serve(t *testing.T, documents ...view.Document) *served {
	t.Helper()
	on, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	s := view.New(documents, nil)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- s.Run(ctx, on) }()
	stop := sync.OnceValue(func() error { cancel(); return <-done })
	t.Cleanup(func() { require.NoError(t, stop()) })
	return &served{s, "http://" + on.Addr().String(), stop}
}

// drawn returns a document of the sample.
func drawn(t *testing.T, events int, names ...string) view.Document {
	tr, w := sample(t, events), wanted(t, names...)
	return view.Document{Name: "sample <b>", Make: func(ctx context.Context, p *view.Progress) (*view.Content, error) {
		r, err := (&view.Cache{}).Open(ctx, tr, w, replay.AtCompleted, p)
		if err != nil {
			return nil, err
		}
		return &view.Content{Page: []byte("<!doctype html>page"), Replays: r, Close: r.Close}, nil
	}}
}

// stalled is the connection of a client that takes nothing.
type stalled struct {
	http.ResponseWriter
	writing  chan struct{} // is sent to when an answer begins
	gone     chan struct{} // closed when the client goes
	deadline time.Time
}

// Write implements [http.ResponseWriter].
func (s *stalled) Write([]byte) (int, error) {
	s.writing <- struct{}{}
	<-s.gone
	return 0, os.ErrDeadlineExceeded
}

// SetWriteDeadline is called by [http.ResponseController].
func (s *stalled) SetWriteDeadline(t time.Time) error {
	s.deadline = t
	return nil
}

// TestStalledClientsBlockNoOther has as many clients as are answered at once ask and take
// nothing: another is answered, and writes to the former have a deadline.
func TestStalledClientsBlockNoOther(t *testing.T) {
	s := serve(t, drawn(t, 500, "bfc"))
	require.NoError(t, s.Wait(context.Background()))
	for _, request := range []string{"tile?run=0&from=0&to=500&low=0&high=99999999&most=100", "state?run=0&event=5",
		"series?from=0&to=300&most=100", ""} {
		path := s.Path() + "0/" + request
		answer, text := s.ask(t, path, nil)
		require.Equal(t, http.StatusOK, answer.StatusCode, "%s: %s", request, text)
		writing, gone := make(chan struct{}), make(chan struct{})
		var clients []*stalled
		var wg sync.WaitGroup
		for range runtime.GOMAXPROCS(0) + 1 {
			c := &stalled{ResponseWriter: httptest.NewRecorder(), writing: writing, gone: gone}
			clients = append(clients, c)
			wg.Go(func() {
				r := httptest.NewRequest(http.MethodGet, path, nil)
				r.Host = "127.0.0.1"
				s.ServeHTTP(c, r)
			})
			<-writing
		}
		answer, text = s.ask(t, path, nil)
		require.Equal(t, http.StatusOK, answer.StatusCode, text)
		close(gone)
		wg.Wait()
		for _, c := range clients {
			require.False(t, c.deadline.IsZero())
		}
	}
}

// ask sends a request and returns its answer. change may change the request.
func (s *served) ask(t *testing.T, path string, change func(*http.Request)) (*http.Response, string) {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, s.at, nil)
	require.NoError(t, err)
	r.URL.Opaque = path // as it is, not cleaned
	if change != nil {
		change(r)
	}
	client := http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	answer, err := client.Do(r)
	require.NoError(t, err)
	text, err := io.ReadAll(answer.Body)
	require.NoError(t, errors.Join(err, answer.Body.Close()))
	return answer, string(text)
}

// TestRequestsWithoutTheTokenAreRefused sends the requests that foreign sites and other users
// could.
func TestRequestsWithoutTheTokenAreRefused(t *testing.T) {
	s := serve(t, drawn(t, 500, "bfc"))
	require.NoError(t, s.Wait(context.Background()))
	page := s.Path() + "0/"
	host := func(name string) func(*http.Request) { return func(r *http.Request) { r.Host = name } }
	browses := func(mode, dest string) func(*http.Request) {
		return func(r *http.Request) {
			r.Header.Set("Sec-Fetch-Site", "cross-site")
			r.Header.Set("Sec-Fetch-Mode", mode)
			r.Header.Set("Sec-Fetch-Dest", dest)
		}
	}
	for name, c := range map[string]struct {
		path   string
		change func(*http.Request)
		status int
	}{
		"the page":                 {page, nil, 200},
		"by name":                  {page, host("localhost:1"), 200},
		"over six":                 {page, host("[::1]:80"), 200},
		"a name that was rebound":  {page, host("evil.example"), 421},
		"one that looks alike":     {page, host("127.0.0.1.evil.example:80"), 421},
		"another site":             {page, func(r *http.Request) { r.Header.Set("Sec-Fetch-Site", "cross-site") }, 403},
		"a link from another site": {page, browses("navigate", "document"), 200},
		"a frame of another site":  {page, browses("navigate", "iframe"), 403},
		"a script of another site": {page, browses("no-cors", "script"), 403},
		"a method that writes":     {page, func(r *http.Request) { r.Method = http.MethodPost }, 405},
		"a preflight":              {page, func(r *http.Request) { r.Method = http.MethodOptions }, 405},
		"the root":                 {"/", nil, 404},
		"another token":            {"/" + strings.Repeat("0", 32) + "/0/", nil, 404},
		"part of the token":        {s.Path()[:9] + "/0/", nil, 404},
		"another document":         {s.Path() + "1/", nil, 404},
		"a negative one":           {s.Path() + "-1/", nil, 404},
		"a huge one":               {s.Path() + strings.Repeat("9", 40) + "/", nil, 404},
		"a file":                   {page + "../../../../etc/passwd", nil, 404},
		"an escaped file":          {page + "..%2f..%2fetc%2fpasswd", nil, 404},
		"deeper":                   {page + "tile/x", nil, 404},
		"no request":               {page + "tiles", nil, 404},
		"a request without words":  {page + "tile", nil, 400},
	} {
		t.Run(name, func(t *testing.T) {
			answer, text := s.ask(t, c.path, c.change)
			require.Equal(t, c.status, answer.StatusCode, text)
			require.Empty(t, answer.Header.Get("Access-Control-Allow-Origin"))
			require.Equal(t, "nosniff", answer.Header.Get("X-Content-Type-Options"))
			require.Contains(t, answer.Header.Get("Content-Security-Policy"), "frame-ancestors 'none'")
			require.NotContains(t, text, "root:")
		})
	}
}

// TestWrongQuestionsAreRefused sends invalid queries.
func TestWrongQuestionsAreRefused(t *testing.T) {
	s := serve(t, drawn(t, 500, "bfc"))
	require.NoError(t, s.Wait(context.Background()))
	for _, q := range []string{
		"tile?run=1&from=0&to=9&low=0&high=9&most=9", "tile?run=0&from=0&to=501&low=0&high=9&most=9",
		"tile?run=0&from=-1&to=9&low=0&high=9&most=9", "tile?run=0&from=0&to=9&low=0&high=9&most=99999999999999999999",
		"tile?run=0&from=0&to=9&low=0&high=9&most=1e3", "tile?run=0&run=0&from=0&to=9&low=0&high=9&most=9",
		"tile?run=0&from=0&to=9&low=0&high=18446744073709551615&most=9", "tile?%zz", "tile?run=0;from=0",
		"series?from=9&to=9&most=9", "series?from=9&to=3&most=9", "series?from=0&to=9", "state?run=0&event=500",
		"state?run=0&event=",
		"state?event=" + strings.Repeat("1", 5000),
	} {
		answer, text := s.ask(t, s.Path()+"0/"+q, nil)
		require.Equal(t, 400, answer.StatusCode, q+text)
		require.Less(t, len(text), 100, q)
	}
}

// about returns the description in an answer.
func about(t *testing.T, text string) (o struct {
	Complete bool
	Event    int
	Shift    int
	Rects    struct{ N int }
	Buckets  struct{ N int }
	Runs     []any
}) {
	t.Helper()
	n := binary.LittleEndian.Uint32([]byte(text))
	require.Zero(t, (n+4)%8)
	require.NoError(t, json.Unmarshal([]byte(text[4:4+n]), &o))
	return o
}

// TestQuestionsAreAnswered asks for blocks, curves and states of two runs.
func TestQuestionsAreAnswered(t *testing.T) {
	s := serve(t, drawn(t, 20_000, "bfc", "caching"))
	require.NoError(t, s.Wait(context.Background()))
	ask := func(q string) string {
		answer, text := s.ask(t, s.Path()+"0/"+q, nil)
		require.Equal(t, 200, answer.StatusCode, text)
		return text
	}
	all := about(t, ask("tile?run=1&from=0&to=20000&low=0&high=99999999999&most=100000"))
	require.True(t, all.Complete)
	few := about(t, ask("tile?run=1&from=0&to=20000&low=0&high=99999999999&most=50"))
	require.False(t, few.Complete)
	require.Equal(t, 50, few.Rects.N)
	part := about(t, ask("series?from=100&to=300&most=1000"))
	require.Equal(t, 0, part.Shift)
	require.Len(t, part.Runs, 2)
	require.Equal(t, 208, part.Buckets.N) // whole buckets of the page, of eight events
	require.Equal(t, 777, about(t, ask("state?run=0&event=777")).Event)
	require.Equal(t, ask("state?run=0&event=777"), ask("state?run=0&event=777"))
}

// TestConcurrentClientsMayDisconnect asks from many sides, some of whom do not wait for the answer.
func TestConcurrentClientsMayDisconnect(t *testing.T) {
	s := serve(t, drawn(t, 50_000, "caching"))
	require.NoError(t, s.Wait(context.Background()))
	var wg sync.WaitGroup
	for i := range 24 {
		wg.Go(func() {
			for _, q := range []string{"state?run=0&event=49999",
				"tile?run=0&from=0&to=50000&low=0&high=99999999999&most=9999"} {
				if i%2 == 1 {
					ctx, stop := context.WithTimeout(context.Background(), time.Duration(i)*time.Millisecond)
					r, _ := http.NewRequestWithContext(ctx, http.MethodGet, s.at+s.Path()+"0/"+q, nil)
					if answer, err := http.DefaultClient.Do(r); err == nil {
						_ = answer.Body.Close()
					}
					stop()
					continue
				}
				answer, text := s.ask(t, s.Path()+"0/"+q, nil)
				if answer.StatusCode != http.StatusOK {
					t.Errorf("%s: %d %s", q, answer.StatusCode, text)
				}
			}
		})
	}
	wg.Wait()
}

// TestAPageThatIsMadeIsWaitedFor asks before the page is there, and ends while it is made.
func TestAPageThatIsMadeIsWaitedFor(t *testing.T) {
	ended := make(chan error, 1)
	started := make(chan struct{})
	s := serve(t, view.Document{Name: "slow <script>",
		Make: func(ctx context.Context, p *view.Progress) (*view.Content, error) {
			p.Set("reading the trace", 30, 120)
			close(started)
			<-ctx.Done()
			ended <- ctx.Err()
			return nil, ctx.Err()
		}}, view.Document{Name: "other", Make: func(context.Context, *view.Progress) (*view.Content, error) {
		return &view.Content{}, nil
	}})
	<-started
	answer, text := s.ask(t, s.Path()+"0/", nil)
	require.Equal(t, 200, answer.StatusCode)
	require.Contains(t, text, "reading the trace: event 30 of 120, 25 %")
	require.Contains(t, text, "slow &lt;script&gt;")
	answer, _ = s.ask(t, s.Path()+"0/tile", nil)
	require.Equal(t, 503, answer.StatusCode)
	_, text = s.ask(t, s.Path(), nil)
	require.Contains(t, text, `<a href="1/">other</a>`)
	require.NoError(t, s.stop())
	require.ErrorIs(t, <-ended, context.Canceled)
}

// TestAForeignPageIsKeptApart serves HTML out of a file.
func TestAForeignPageIsKeptApart(t *testing.T) {
	s := serve(t, view.Document{Make: func(context.Context, *view.Progress) (*view.Content, error) {
		return &view.Content{Page: []byte("<script>fetch('/')</script>"), Foreign: true}, nil
	}}, view.Document{Make: func(context.Context, *view.Progress) (*view.Content, error) {
		return nil, errors.New("bad <file>")
	}})
	require.Error(t, s.Wait(context.Background()))
	answer, _ := s.ask(t, s.Path()+"0/", nil)
	require.Contains(t, answer.Header.Get("Content-Security-Policy"), "sandbox allow-scripts; default-src 'none'")
	answer, text := s.ask(t, s.Path()+"1/", nil)
	require.Equal(t, 500, answer.StatusCode)
	require.Contains(t, text, "bad &lt;file&gt;")
}

// TestTemporaryFilesAreRemoved counts the files of replays that are not kept.
func TestTemporaryFilesAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	d := drawn(t, 2000, "bfc")
	content, err := d.Make(context.Background(), view.NewProgress(nil))
	require.NoError(t, err)
	left := func() []string {
		list, err := filepath.Glob(filepath.Join(os.Getenv("TMPDIR"), "*"))
		require.NoError(t, err)
		return list
	}
	require.Len(t, left(), 1)
	require.NoError(t, content.Close())
	require.Empty(t, left())
	ctx, stop := context.WithCancel(context.Background())
	stop()
	_, err = d.Make(ctx, view.NewProgress(nil))
	require.ErrorIs(t, err, context.Canceled)
	require.Empty(t, left())
}
