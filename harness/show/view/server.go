package view

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // the page of a note
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
	Name string                                                   // for people
	Make func(ctx context.Context, p *Progress) (*Content, error) // called once, in the background
}

// Content is a page and what its script may ask for.
type Content struct {
	Page    []byte       // HTML
	Foreign bool         // the page is out of a file, and is kept apart from all others
	Replays *Replays     // what the script may ask for; nil for nothing
	Close   func() error // called at the end; may be nil
}

// document is a document with its page.
type document struct {
	Document
	progress *Progress
	ready    chan struct{} // closed when content and err are set
	content  *Content
	err      error
}

// Server serves documents. Make one with [New].
type Server struct {
	token     string
	documents []*document
	answering chan struct{} // places for those who are answered
	replaying chan struct{} // places for those for whom a trace is replayed
}

// New returns a server of documents. notify is told how far the making of pages has come; it may be
// nil.
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

// Path returns the path of the first page, which only those know who may ask.
func (s *Server) Path() string { return "/" + s.token + "/" }

// Run makes the pages and serves them until ctx ends. It returns when nothing of it runs any more.
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
		// What was asked ends with ctx; a browser keeps connections open that it has asked nothing by
		// yet.
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

// Wait returns when all pages are made, with what went wrong, or when ctx ends.
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

// refusal is a request that is not answered.
type refusal struct {
	status int
	why    string
}

// judge returns why a request is not answered, or nil.
func (s *Server) judge(r *http.Request) *refusal {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	switch {
	case host != "127.0.0.1" && host != "localhost" && strings.Trim(host, "[]") != "::1":
		return &refusal{http.StatusMisdirectedRequest, "this server answers on the loopback interface only"}
	case r.Header.Get("Sec-Fetch-Site") == "cross-site" && !opens(r):
		return &refusal{http.StatusForbidden, "this server answers no other site"}
	case r.Method != http.MethodGet && r.Method != http.MethodHead:
		return &refusal{http.StatusMethodNotAllowed, "want GET"}
	}
	return nil
}

// opens reports whether a browser asks for a page of its own, as when a reader follows a link or
// opens a file that leads here. What other sites can make a browser ask for besides, such as a
// script or a frame, says otherwise.
func opens(r *http.Request) bool {
	return r.Header.Get("Sec-Fetch-Mode") == "navigate" && r.Header.Get("Sec-Fetch-Dest") == "document"
}

// A client that takes an answer more slowly than this is left.
const (
	leastTime = 10 * time.Second
	leastRate = 1 << 20 // bytes a second
)

// send writes an answer of which no more will come.
func send(w http.ResponseWriter, body []byte) {
	deadline := time.Now().Add(leastTime + time.Duration(len(body))*time.Second/leastRate)
	_ = http.NewResponseController(w).SetWriteDeadline(deadline) // there are connections in tests that have none
	_, _ = w.Write(body)                                         // whoever asked has gone
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(leastTime)) // of what is no answer; see send
	h := w.Header()
	h.Set("Cache-Control", "no-store")
	h.Set("Content-Security-Policy", "default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'")
	h.Set("Cross-Origin-Opener-Policy", "same-origin")
	h.Set("Cross-Origin-Resource-Policy", "same-origin")
	h.Set("Referrer-Policy", "no-referrer")
	h.Set("X-Content-Type-Options", "nosniff")
	if no := s.judge(r); no != nil {
		h.Set("Allow", "GET, HEAD")
		http.Error(w, no.why, no.status)
		return
	}
	parts := strings.Split(r.URL.Path, "/") // "", token, number, question
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

// patience is how long a request for a page that is being made is held, which is how often its
// progress is shown.
const patience = time.Second

// document answers about a document: with its page, or a question of its script.
func (s *Server) document(w http.ResponseWriter, r *http.Request, d *document, question string) {
	if question == "" { // what is nearly made comes at once, and not at the next refresh
		select {
		case <-d.ready:
		case <-time.After(patience):
		case <-r.Context().Done():
			return
		}
	}
	select {
	case <-d.ready:
	default:
		if question == "" {
			d.waiting(w)
		} else {
			http.Error(w, "the page is not made yet", http.StatusServiceUnavailable)
		}
		return
	}
	switch {
	case d.err != nil:
		w.WriteHeader(http.StatusInternalServerError)
		_ = notePage.Execute(w, note{Title: d.Name, Text: d.err.Error()})
	case question == "":
		d.page(w)
	case d.content.Replays == nil:
		http.NotFound(w, r)
	default:
		s.answer(w, r, d.content.Replays, question)
	}
}

// page answers with a page.
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

func (s *Server) answer(w http.ResponseWriter, r *http.Request, rec *Replays, question string) {
	var f func(context.Context, io.Writer, url.Values) error
	places := s.answering
	switch question {
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
		http.Error(w, "the question cannot be read", http.StatusBadRequest)
		return
	}
	var answer bytes.Buffer // so that a client that reads slowly keeps no place
	select {
	case places <- struct{}{}:
		err = func() error {
			defer func() { <-places }() // also if it panics
			return f(r.Context(), &answer, q)
		}()
	case <-r.Context().Done():
		return
	}
	var bad badQuestion
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

// refuse answers with an error, however long its making took.
func refuse(w http.ResponseWriter, err error, status int) {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.WriteHeader(status)
	send(w, []byte(err.Error()+"\n"))
}

// note is a page of words.
type note struct {
	Title, Text string
	Refresh     bool
	Links       []string // names of documents
}

//go:embed note.html
var noteHTML string

// notePage shows a note.
var notePage = template.Must(template.New("note").Parse(noteHTML))

// waiting says how far the making of the page has come, and asks again.
func (d *document) waiting(w http.ResponseWriter) {
	n := note{Title: d.Name, Text: "waiting for the files before it", Refresh: true}
	if phase, done, known := d.progress.Get(); phase != "" {
		n.Text = phase
		if known > 0 {
			n.Text = fmt.Sprintf("%s: event %d of %d, %d %%", phase, done, known, 100*done/known)
		}
	}
	_ = notePage.Execute(w, n) // whoever asked has gone
}

// index lists the documents, or leads to the only one.
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
	_ = notePage.Execute(w, n) // whoever asked has gone
}
