package cli

import (
	"bytes"
	"context"
	_ "embed" // the page that leads to the address
	"errors"
	"fmt"
	"html/template"
	"io"
	"net"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device/sim"
	"github.com/vramyard/vramyard/harness/provenance"
	"github.com/vramyard/vramyard/harness/replay"
	"github.com/vramyard/vramyard/harness/show/page"
	"github.com/vramyard/vramyard/harness/show/report"
	"github.com/vramyard/vramyard/harness/show/view"
	"github.com/vramyard/vramyard/harness/study/postmortem"
	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/corpus"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/internal/budget"
	"github.com/vramyard/vramyard/internal/fileio"
	"github.com/vramyard/vramyard/internal/units"
)

type viewFlags struct {
	catalogue setting.Catalogue
	deviceFlags
	strategies, freeAt, cacheDir string
	source                       formats.Options
	noBrowser                    bool
	port                         uint16
	until                        time.Duration

	setups []setting.Setup // empty: the recorded settings
	on     sim.Config
	at     replay.FreeAt
	cache  view.Cache
}

const (
	keptFrom = 1 << 20 // least events of a cached recording; a shorter trace is replayed in a second
	mostKept = 8 << 30 // most bytes of the cache
)

func newView(catalogue setting.Catalogue) *cobra.Command {
	f := viewFlags{catalogue: catalogue}
	c := &cobra.Command{
		Use:   "view FILE...",
		Short: "Show traces, snapshots and reports in a browser",
		Long: `Replay traces and memory snapshots and show them in a browser. The page looks like the output of --html, but loads
details on demand, so that every block and every instant can be inspected.

A FILE is a trace of any format in docs/traces.md, the name of one inside the program, a page that --html wrote,
or a result that --json wrote.
Without --strategies, a trace is replayed through PyTorch's caching allocator, with the recorded settings and
capacity if the file has them.

The pages are served on the loopback interface only, and the address contains a random secret. Ctrl-C ends the
server. docs/reports.md describes the cache for long traces.`,
		Example: "  vramyard view snapshot.pickle\n  vramyard view --strategies caching,bfc --device sim:24GiB trace.parquet",
		Args:    cobra.MinimumNArgs(1),
		RunE:    f.run,
	}
	c.Flags().StringVar(&f.strategies, "strategies", "", "strategies to replay through, "+namedUsage+
		" (default: caching, as recorded)")
	f.addDevice(c, "its capacity bounds the replays")
	f.addSim(c, "settings of the simulated device, as a JSON object; the default is "+defaultDevice())
	addSource(c, &f.source)
	addFreeAt(c, &f.freeAt)
	c.Flags().StringVar(&f.cacheDir, "cache", "",
		`cache directory for long traces, or "none" (default: vramyard in the user's cache directory)`)
	c.Flags().BoolVar(&f.noBrowser, "no-browser", false, "print the address and open no browser")
	c.Flags().Uint16Var(&f.port, "port", 0, "port to serve on; 0 for a free one")
	c.Flags().DurationVar(&f.until, "for", 0, "end after this time, such as 10m (default: at Ctrl-C)")
	return c
}

func (f *viewFlags) run(cmd *cobra.Command, args []string) error {
	if err := f.settle(args); err != nil {
		return err
	}
	f.source.Warn = warnings(cmd)
	documents, errs := make([]view.Document, len(args)), make([]error, len(args))
	for i, path := range args {
		documents[i], errs[i] = f.document(cmd, path)
	}
	if err := errors.Join(errs...); err != nil {
		return err // before the address is printed
	}
	on, err := listen(f.port)
	if err != nil {
		return flagError("port", err)
	}
	signal.Reset(os.Interrupt, syscall.SIGTERM) // an interrupt is the regular end of this command
	ctx, stop := signal.NotifyContext(cmd.Context(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if f.until > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, f.until)
		defer cancel()
	}
	p, _ := ctx.Value(progressKey{}).(*progress)
	return f.serve(ctx, cmd, view.New(documents, p.phase), on, p.stop)
}

// serve serves until ctx ends or a page cannot be made. It calls made once all pages are made.
func (f *viewFlags) serve(ctx context.Context, cmd *cobra.Command, s *view.Server, on net.Listener, made func()) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	served := make(chan error, 1)
	go func() { served <- s.Run(ctx, on) }()
	address := "http://" + on.Addr().String() + s.Path()
	if _, err := fmt.Fprintln(cmd.OutOrStdout(), address); err != nil {
		stop()
		return errors.Join(err, <-served)
	}
	if !f.noBrowser {
		redirect, err := browse(address)
		if err != nil {
			tell(cmd.ErrOrStderr(), "no browser was opened (%v); open the address yourself", err)
		}
		defer os.Remove(redirect)
	}
	if err := s.Wait(ctx); err != nil {
		ended := ctx.Err() != nil
		stop()
		if err := errors.Join(err, <-served); !ended {
			return err
		}
		return nil
	}
	made()
	return <-served
}

// settle validates the flags.
func (f *viewFlags) settle(args []string) (err error) {
	if f.until < 0 {
		return flagError("for", errors.New("want a time that is not negative"))
	}
	if f.on, err = f.config(); err != nil {
		return err
	}
	if f.at, err = parseFreeAt(f.freeAt); err != nil {
		return err
	}
	if f.strategies != "" {
		if f.setups, err = lookupAll(f.catalogue, f.strategies, ""); err != nil {
			return err
		}
	}
	f.cache = view.Cache{Dir: f.cacheDir, Build: build(), From: keptFrom, Most: mostKept}
	switch f.cacheDir {
	case "none":
		f.cache.Dir = ""
	case "":
		if dir, err := os.UserCacheDir(); err == nil { // without it nothing is cached
			f.cache.Dir = filepath.Join(dir, "vramyard")
		}
	}
	return onceFromStdin(args)
}

// build identifies this build of the program, because replays of another build may differ.
func build() string {
	path, err := os.Executable()
	if err != nil {
		return provenance.Version
	}
	info, err := os.Stat(path)
	if err != nil {
		return provenance.Version
	}
	return fmt.Sprintf("%s %d %d", provenance.Version, info.Size(), info.ModTime().UnixNano())
}

// listen listens on the loopback interface.
func listen(port uint16) (net.Listener, error) {
	at := strconv.Itoa(int(port))
	on, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", at))
	if err != nil {
		if six, errSix := net.Listen("tcp", net.JoinHostPort("::1", at)); errSix == nil {
			return six, nil
		}
	}
	return on, err
}

// browse opens the user's browser. Every user of the machine can read the arguments of a process,
// and the address contains the secret. So the browser is given a file that only this user can read
// and that redirects to the address. The caller removes the file at the end, also after an error.
func browse(address string) (redirect string, err error) {
	f, err := os.CreateTemp("", "vramyard-view-*.html") // with mode 0600
	if err != nil {
		return "", err
	}
	err = redirectPage.Execute(f, address)
	if err := errors.Join(err, f.Close()); err != nil {
		return f.Name(), err
	}
	name, args := "xdg-open", []string{f.Name()}
	switch runtime.GOOS {
	case "darwin":
		name = "open"
	case "windows":
		name, args = "rundll32", []string{"url.dll,FileProtocolHandler", f.Name()}
	}
	c := exec.Command(name, args...)
	if err := c.Start(); err != nil {
		return f.Name(), err
	}
	go func() { _ = c.Wait() }() // the browser's exit status is irrelevant
	return f.Name(), nil
}

//go:embed redirect.html
var redirectHTML string

// redirectPage redirects a browser to an address.
var redirectPage = template.Must(template.New("redirect").Parse(redirectHTML))

// document returns the document of a file.
func (f *viewFlags) document(cmd *cobra.Command, path string) (view.Document, error) {
	d := view.Document{Name: units.Printable(baseOf(path))}
	head, err := headOf(path)
	switch {
	case err != nil:
		return d, err
	case isResult(head):
		d.Make = func(context.Context, *view.Progress) (*view.Content, error) { return f.showResult(path) }
	case isPage(head):
		d.Make = func(context.Context, *view.Progress) (*view.Content, error) { return readPage(path) }
	default:
		if err := f.recognize(path); err != nil {
			return d, err
		}
		d.Make = func(ctx context.Context, p *view.Progress) (*view.Content, error) { return f.draw(ctx, cmd, path, p) }
	}
	return d, nil
}

// recognize checks the name and the first bytes of a trace. Standard input and pipes can be read
// only once.
func (f *viewFlags) recognize(path string) error {
	info, err := os.Stat(path)
	switch {
	case path == "-", err == nil && !info.Mode().IsRegular(), err != nil &&
		slices.Contains(corpus.Names(), path):
		return nil
	}
	return formats.Recognize(path, f.source)
}

// headOf returns the first bytes of a file, none of standard input, a pipe and a trace inside the
// program.
func headOf(path string) ([]byte, error) {
	info, err := os.Stat(path)
	if err != nil || !info.Mode().IsRegular() {
		return nil, nil // openSource has reported the error
	}
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	plain, err := fileio.NewReader(in)
	if err != nil {
		return nil, in.Close() // likewise
	}
	head := make([]byte, 512)
	n, _ := io.ReadFull(plain, head) // the complete read reports the error
	plain.Close()
	return head[:n], in.Close()
}

// isPage reports whether a file begins like a page.
func isPage(head []byte) bool {
	return bytes.HasPrefix(bytes.ToLower(bytes.TrimSpace(head)), []byte("<!doctype html"))
}

// resultHead matches the beginning of a result of this program.
var resultHead = regexp.MustCompile(`^\s*\{\s*"schema":\s*"vramyard-[a-z-]+/`)

// isResult reports whether a file begins like a result in JSON.
func isResult(head []byte) bool { return resultHead.Match(head) }

func (f *viewFlags) showResult(path string) (*view.Content, error) {
	text, err := readAll(path)
	if err != nil {
		return nil, err
	}
	collectWithin(f.source.Memory)
	r, err := view.Result(units.Printable(baseOf(path)), text, colors(f.catalogue), budget.New(f.source.Memory))
	if err != nil {
		return nil, err
	}
	r.Provenance, r.Limit = provenance.Read(), mostPage
	var b bytes.Buffer
	if err := page.Write(&b, r); err != nil {
		return nil, err
	}
	return &view.Content{Page: b.Bytes()}, nil
}

// mostPage bounds the bytes of a file that is shown as a whole, and of a page.
const mostPage = 64 << 20

// readPage reads a page that was written as a file.
func readPage(path string) (*view.Content, error) {
	text, err := readAll(path)
	if err != nil {
		return nil, err
	}
	if !page.Is(text) {
		return nil, fmt.Errorf("%s: HTML, and no page that vramyard wrote", path)
	}
	return &view.Content{Page: text, Foreign: true}, nil
}

func readAll(path string) ([]byte, error) {
	in, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	plain, err := fileio.NewReader(in)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: %w", path, err), in.Close())
	}
	text, err := io.ReadAll(io.LimitReader(plain, mostPage+1))
	switch {
	case err != nil:
		err = fmt.Errorf("%s: %w", path, err)
	case len(text) > mostPage:
		err = fmt.Errorf("%s: more than %s", path, units.Bytes(mostPage))
	}
	plain.Close()
	return text, errors.Join(err, in.Close())
}

func (f *viewFlags) draw(ctx context.Context, cmd *cobra.Command, path string,
	p *view.Progress) (*view.Content, error) {
	p.Set("reading the file", 0, 0)
	src, stacks, wanted, err := f.open(path, cmd.InOrStdin())
	if err != nil {
		return nil, err
	}
	cache := f.cache
	cache.Explain = func(t *page.Traced, prepared *replay.Prepared, step func(int) error) error {
		runs := make([]drawing, len(wanted))
		for i, w := range wanted {
			runs[i] = drawing{setup: w.Setup, device: w.Device}
		}
		var err error
		if t.Top, err = topOf(src, stacks); err != nil {
			return err
		}
		return explain(t, prepared, stacks, runs, page.Options{FreeAt: f.at, Step: step})
	}
	rec, err := cache.Open(ctx, src, wanted, f.at, p)
	if err != nil {
		return nil, err
	}
	if stacks != nil {
		rec.Stacks = stacks
	}
	t, err := rec.Traced()
	if err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	names := make([]string, len(wanted))
	r := &page.Report{
		Kind: "view", Provenance: provenance.Read(), Command: commandLine(cmd, []string{path}),
		Traces: []page.Traced{t}, Live: true, Limit: mostPage,
	}
	for i := range rec.Runs {
		names[i] = rec.Runs[i].Setup.Name
		r.Sheets = append(r.Sheets, report.ReplaySheet(rec.Runs[i].Picture.Result))
	}
	r.Title = strings.Join(names, ", ") + " on " + units.Printable(src.Head().Header.Name)
	var b bytes.Buffer
	if err := page.Write(&b, r); err != nil {
		return nil, errors.Join(err, rec.Close())
	}
	return &view.Content{Page: b.Bytes(), Replays: rec, Close: rec.Close}, nil
}

// open opens a trace. It returns the runs to show and the stacks of the program's requests, nil if
// they are unknown.
func (f *viewFlags) open(path string, stdin io.Reader) (trace.Source, *postmortem.Stacks, []view.RunSpec, error) {
	src, of, err := openRecording(openSource, path, f.source, stdin)
	if err != nil {
		return nil, nil, nil, err
	}
	var stacks *postmortem.Stacks
	if of.Snapshot != nil {
		stacks = of.Stacks()
	}
	h := src.Head().Header
	on := f.on
	if card := recordedCard(h); card > 0 && !f.device.given && !f.sim.given {
		on.Capacity = card
	}
	setups := f.setups
	if len(setups) == 0 {
		setup, err := recordedSetup(f.catalogue, h, of.Timeline)
		if err != nil {
			return nil, nil, nil, fmt.Errorf("%s: %w", path, err)
		}
		setups = []setting.Setup{setup}
	}
	color := colors(f.catalogue)
	wanted := make([]view.RunSpec, len(setups))
	for i, s := range setups {
		wanted[i] = view.RunSpec{Setup: s, Device: on, Color: color(s.Name)}
		if on.Capacity > 0 {
			wanted[i].Setup = s.ForCapacity(on.Capacity)
		}
	}
	return src, stacks, wanted, nil
}

// recordedSetup returns the strategy for the recorded allocator, or PyTorch's with default settings
// if the file has none.
func recordedSetup(c setting.Catalogue, h trace.Header, timeline *torch.Timeline) (setting.Setup, error) {
	if config := settingsOf(h); config != nil {
		if a, err := recordedAllocator(c, config, timeline, ""); err != nil || a.setup.Name != "" {
			return a.setup, err
		}
	}
	return c.Lookup(cachingName, nil)
}
