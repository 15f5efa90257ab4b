package view

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // template of note
	"encoding/hex"
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"net/http"
	"net/url"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"
)

// Document is something that has a page.
type Document struct {
	Name string                                                   // title
	Make func(ctx context.Context, p *Progress) (*Content, error) // called once, in the background
}

// Content is a page and the data its script may request.
type Content struct {
	Page    []byte       // HTML
	Foreign bool         // the page comes from a file and is isolated from other pages
	Replays *Replays     // may be nil
	Close   func() error // may be nil
}

// document is a document with the state of its page.
type document struct {
	Document
	progress *Progress
	ready    chan struct{} // closed when content and err are set
	content  *Content
	err      error
}

// Server serves documents. Create it with [New].
type Server struct {
	token     string
	documents []*document
	answering chan struct{} // limits concurrent requests
	replaying chan struct{} // limits concurrent replays
}

// New returns a server of documents. notify receives the progress of making pages; it may be nil.
func New(documents []Document, notify func(phase string, done, known int)) *Server {
	var secret [16]byte
	_, _ = rand.Read(secret[:]) // never fails
	cores := runtime.GOMAXPROCS(0)
	s := &Server{
		token: hex.EncodeToString(secret[:]), answering: make(chan struct{}, cores),
		replaying: make(chan struct{}, (cores+1)/2),
	}
	for _, d := range documents {
		s.documents = append(s.documents, &document{Document: d, progress: NewProgress(notify), ready: make(chan struct{})})
	}
	return s
}

// Path returns the path of the first page, which contains the secret token.
func (s *Server) Path() string { return "/" + s.token + "/" }

// Run makes the pages and serves them until ctx ends. It returns after all its goroutines have
// ended.
func (s *Server) Run(ctx context.Context, on net.Listener) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	var wg sync.WaitGroup
	wg.Go(func() {
		for _, d := range s.documents {
			d.content, d.err = d.Make(ctx, d.progress)
			close(d.ready)
		}
	})
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: 1 << 14,
		BaseContext: func(net.Listener) context.Context { return ctx },
	}
	served := make(chan error, 1)
	go func() { served <- server.Serve(on) }()
	var err error
	select {
	case err = <-served:
	case <-ctx.Done():
		// Running requests end with ctx, but browsers keep idle connections open.
		grace, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
		if server.Shutdown(grace) != nil {
			err = server.Close()
		}
		cancel()
		if closed := <-served; !errors.Is(closed, http.ErrServerClosed) {
			err = errors.Join(err, closed)
		}
	}
	stop()
	wg.Wait()
	for _, d := range s.documents {
		if d.content != nil && d.content.Close != nil {
			err = errors.Join(err, d.content.Close())
		}
	}
	return err
}

// Wait returns when all pages are made, with their errors, or when ctx ends.
func (s *Server) Wait(ctx context.Context) error {
	var errs []error
	for _, d := range s.documents {
		select {
		case <-d.ready:
			errs = append(errs, d.err)
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return errors.Join(errs...)
}

// refusal is a rejected request.
type refusal struct {
	status int
	why    string
}

// checkAccess returns the reason to reject a request, or nil.
func (s *Server) checkAccess(r *http.Request) *refusal {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch {
	case host != "127.0.0.1" && host != "localhost" && strings.Trim(host, "[]") != "::1":
		return &refusal{http.StatusMisdirectedRequest, "this server answers on the loopback interface only"}
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && !opens(r):
		return &refusal{http.StatusForbidden, "cross-site request refused"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &refusal{http.StatusMethodNotAllowed, "want GET"}
	}
	return nil
}

// opens reports whether the request is a top-level navigation, as when a reader follows a link.
// Scripts, frames and other subresources of foreign sites are not.
func opens(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// A client that reads a response more slowly than this is disconnected.
const (
	leastTime = 10 * time.Second
	leastRate = 1 << 20 // bytes per second
)

// send writes a complete response.
func send(w http.ResponseWriter, body []byte) {
	deadline := time.Now().Add(leastTime + time.Duration(len(body))*time.Second/leastRate)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline) // test connections do not support it
	_, _ = w.Write(body)                                         // the client may have gone
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(leastTime)) // for errors; send sets its own
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if no := s.checkAccess(r); no != nil {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, no.why, no.status)
		return
	}
	parts := strings.Split(r.URL.Path, "/") // "", token, number, request
	if len(parts) < 3 || subtle.ConstantTimeCompare([]byte(parts[1]), []byte(s.token)) != 1 {
		http.NotFound(w, r)
		return
	}
	if parts = parts[2:]; len(parts) == 1 && parts[0] == "" {
		s.index(w)
		return
	}
	n, err := strconv.ParseUint(parts[0], 10, 16)
	if err != nil || n >= uint64(len(s.documents)) || len(parts) != 2 {
		http.NotFound(w, r)
		return
	}
	s.document(w, r, s.documents[n], parts[1])
}

// pageWait is how long a request for an unfinished page waits, and the refresh interval of its
// progress.
const pageWait = time.Second

// document serves a page or a request of its script.
func (s *Server) document(w http.ResponseWriter, r *http.Request, d *document, request string) {
	if request == "" { // an almost finished page is served at once instead of after a refresh
		select {
		case <-d.ready:
		case <-time.After(pageWait):
		case <-r.Context().Done():
			return
		}
	}
	select {
	case <-d.ready:
	default:
		if request == "" {
			d.waiting(w)
		} else {
			http.Error(w, "the page is not ready yet", http.StatusServiceUnavailable)
		}
		return
	}
	switch {
	case d.err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		_ = notePage.Execute(w, note{Title: d.Name, Text: d.err.Error()})
	case request == "":
		d.page(w)
	case d.content.Replays == nil:
		http.NotFound(w, r)
	default:
		s.answer(w, r, d.content.Replays, request)
	}
}

// page serves the page.
func (d *document) page(w http.ResponseWriter) {
	policy := "frame-ancestors 'none'" // the page has a policy of its own
	if d.content.Foreign {
		policy = "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; " +
			"img-src data: blob:; frame-ancestors 'none'"
	}
	w.Header().Set("Content-Security-Policy", policy)
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	send(w, d.content.Page)
}

func (s *Server) answer(w http.ResponseWriter, r *http.Request, rec *Replays, request string) {
	var f func(context.Context, io.Writer, url.Values) error
	places := s.answering
	switch request {
	case "tile":
		f = rec.tile
	case "series":
		f = rec.series
	case "state":
		f, places = rec.state, s.replaying
	default:
		http.NotFound(w, r)
		return
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		http.Error(w, "cannot parse the query", http.StatusBadRequest)
		return
	}
	var answer bytes.Buffer // buffered, so that a slow client holds no slot
	select {
	case places <- struct{}{}:
		err = func() error {
			defer func() { <-places }() // even after a panic
			return f(r.Context(), &answer, q)
		}()
	case <-r.Context().Done():
		return
	}
	var bad badQuery
	switch {
	case errors.As(err, &bad):
		refuse(w, err, http.StatusBadRequest)
	case err != nil && r.Context().Err() == nil:
		refuse(w, err, http.StatusInternalServerError)
	case err == nil:
		w.Header().Set("Content-Type", "application/octet-stream")
		send(w, answer.Bytes())
	}
}

// refuse writes an error.
func refuse(w http.ResponseWriter, err error, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	send(w, []byte(err.Error()+"\n"))
}

// note is a page of plain text.
type note struct {
	Title, Text string
	Refresh     bool
	Links       []string // document titles
}

//go:embed note.html
var noteHTML string

var notePage = template.Must(template.New("note").Parse(noteHTML))

// waiting serves the progress of making the page, with a refresh.
func (d *document) waiting(w http.ResponseWriter) {
	n := note{Title: d.Name, Text: "waiting for the files before it", Refresh: true}
	if phase, done, known := d.progress.Get(); phase != "" {
		n.Text = phase
		if known > 0 {
			n.Text = fmt.Sprintf("%s: event %d of %d, %d %%", phase, done, known, 100*done/known)
		}
	}
	_ = notePage.Execute(w, n) // the client may have gone
}

// index lists the documents, or redirects to the only one.
func (s *Server) index(w http.ResponseWriter) {
	if len(s.documents) == 1 {
		w.Header().Set("Location", "0/")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	n := note{Title: "vramyard view"}
	for _, d := range s.documents {
		n.Links = append(n.Links, d.Name)
	}
	_ = notePage.Execute(w, n) // the client may have gone
}
