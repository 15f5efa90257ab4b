package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/chromedp/cdproto/inspector"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/cdproto/systeminfo"
	"github.com/chromedp/chromedp"
)

// open starts a fresh Chromium, so that no memory of an earlier page counts, and measures the time
// until a picture of the loaded window.
func (b beside) open(ctx context.Context, name string, w way) (o opening, err error) {
	browser, stop, err := start(ctx)
	if err != nil {
		return o, err
	}
	defer stop()
	t, err := blank(browser, look{width: 1280, height: 900})
	if err != nil {
		return o, err
	}
	defer t.close()
	inTime, cancel := context.WithTimeoutCause(t.ctx, b.limit, fmt.Errorf("not in %v", b.limit))
	defer cancel()
	inTime, fail := context.WithCancelCause(inTime)
	defer fail(nil)
	if err := ends(t, fail); err != nil {
		return o, err
	}
	if w.after != nil {
		defer w.after()
	}
	begin := time.Now()
	if w.prepare != nil {
		if err := w.prepare(inTime, t); err != nil {
			return o, err
		}
		o.before = time.Since(begin).Seconds()
		begin = time.Now()
	}
	o.died = w.load(inTime, t)
	var shot page.CaptureScreenshotResult
	if o.died == nil {
		shot, o.died = chromedp.Call(inTime, page.CaptureScreenshot, page.CaptureScreenshotParams{})
	}
	o.seconds = time.Since(begin).Seconds()
	o.bytes, o.cpu = cost(browser)
	if o.died != nil {
		if inTime.Err() != nil {
			o.died = context.Cause(inTime)
		}
		return o, nil
	}
	if b.shots != "" {
		if err := os.MkdirAll(b.shots, 0o777); err != nil {
			return o, err
		}
		return o, os.WriteFile(filepath.Join(b.shots, name+"-"+w.name+".png"), shot.Data, 0o666)
	}
	return o, nil
}

// ends calls fail when a tab crashes or a script in it throws: there will be no picture then.
func ends(t *tab, fail func(error)) error {
	if _, err := chromedp.Call(t.ctx, inspector.Enable, struct{}{}); err != nil {
		return err
	}
	return chromedp.Listen(t.ctx, func(event any) {
		switch e := event.(type) {
		case *inspector.EventTargetCrashed:
			fail(errors.New("the tab crashed"))
		case *runtime.EventExceptionThrown:
			what := e.ExceptionDetails.Text
			if e.ExceptionDetails.Exception != nil {
				what, _, _ = strings.Cut(e.ExceptionDetails.Exception.Description, "\n")
			}
			fail(errors.New(what))
		}
	})
}

// cost returns the most memory that the largest process of a tab has held, in bytes, as Linux
// counts it, elsewhere zero, and the processor time of the processes of tabs, in seconds.
func cost(browser context.Context) (most int64, cpu float64) {
	all, err := chromedp.CallBrowser(browser, systeminfo.GetProcessInfo, struct{}{})
	if err != nil {
		return 0, 0
	}
	for _, p := range all.ProcessInfo {
		if p.Type != "renderer" {
			continue
		}
		cpu += p.CPUTime
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.ID))
		if err != nil {
			continue
		}
		if _, after, found := strings.Cut(string(text), "VmHWM:"); found {
			var kb int64
			fmt.Sscan(after, &kb)
			most = max(most, kb<<10)
		}
	}
	return most, cpu
}

// until waits until an expression of the page is true at the beginning of a frame, and two frames
// were drawn since: the first shows what is there now. A page that loads itself again is asked
// again.
func until(ctx context.Context, expression string) error {
	text := `new Promise((done) => {
		const look = () => requestAnimationFrame(() => {
			if (!(` + expression + `)) look();
			else requestAnimationFrame(() => requestAnimationFrame(() => done(true)));
		});
		look();
	})`
	for {
		there, err := chromedp.Run(ctx, chromedp.Evaluate[bool](text, chromedp.EvalAwaitPromise))
		if err == nil && there {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// picture waits for the first picture of a page of ours, which it moves into the window if it is
// below.
func picture(ctx context.Context) error {
	return until(ctx, `(`+drawn+`) && (document.querySelector("main canvas")?.scrollIntoView({block: "nearest"}) ?? true)`)
}

// show opens a page of ours and waits for its first picture.
func show(address string) func(ctx context.Context, t *tab) error {
	return func(ctx context.Context, _ *tab) error {
		if err := chromedp.Do(ctx, chromedp.Navigate(address)); err != nil {
			return err
		}
		return picture(ctx)
	}
}

// view starts "vramyard view", which knows nothing of the snapshot yet, and opens its page as a
// browser would.
func (b beside) view(snapshot string) way {
	end := func() {}
	return way{
		name: "view",
		load: func(ctx context.Context, _ *tab) error {
			c := exec.Command(b.program, "view", "--no-browser", "--cache", "none", "--strategies", b.strategy, snapshot)
			out, err := c.StdoutPipe()
			if err != nil {
				return err
			}
			if err := c.Start(); err != nil {
				return err
			}
			end = func() {
				c.Process.Signal(os.Interrupt)
				c.Wait()
			}
			address, err := bufio.NewReader(out).ReadString('\n')
			if err != nil {
				return err
			}
			if err := chromedp.Do(ctx, chromedp.Navigate(strings.TrimSpace(address)+"0/")); err != nil {
				return err
			}
			return picture(ctx) // until it is there, the page says how far it is and loads itself again
		},
		after: func() { end() },
	}
}

// official serves PyTorch's viewer as it is, with the addresses of d3 led to a file beside it, and
// gives it a snapshot by its button. The clock runs from there to its timeline.
func (b beside) official(snapshot string) way {
	var server http.Server
	return way{
		name: "viewer",
		prepare: func(ctx context.Context, t *tab) error {
			text, err := os.ReadFile(filepath.Join(b.viz, "MemoryViz.js"))
			if err != nil {
				return err
			}
			on, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				return err
			}
			server = http.Server{Handler: viewer(b.viz, string(text)), ReadHeaderTimeout: time.Minute}
			go server.Serve(on)
			context.AfterFunc(t.ctx, func() { server.Close() })
			if err := chromedp.Do(ctx, chromedp.Navigate("http://"+on.Addr().String())); err != nil {
				return err
			}
			return until(ctx, `document.querySelector("input[type=file]")`)
		},
		load: func(ctx context.Context, _ *tab) error {
			if err := chromedp.Do(ctx, chromedp.SetUploadFiles(chromedp.CSS("input[type=file]"), []string{snapshot})); err !=
				nil {
				return err
			}
			return until(ctx, `document.querySelector("svg polygon")`)
		},
	}
}

var (
	imported = regexp.MustCompile(`import (.*) from ["'](https?://[^"']+)["']`)
	named    = regexp.MustCompile(`\bd3\.(\w+)`)
	word     = regexp.MustCompile(`\w+`)
)

// viewer serves the viewer's files, and d3 for its import from the network.
func viewer(dir, text string) http.Handler {
	names, addresses := map[string]bool{}, []string{}
	for _, m := range named.FindAllStringSubmatch(text, -1) {
		names[m[1]] = true
	}
	for _, m := range imported.FindAllStringSubmatch(text, -1) {
		addresses = append(addresses, fmt.Sprintf("%q: \"/d3.mjs\"", m[2]))
		if strings.HasPrefix(m[1], "{") {
			for _, n := range word.FindAllString(m[1], -1) {
				names[n] = true
			}
		}
	}
	module := "export const {" + strings.Join(slices.Sorted(maps.Keys(names)), ", ") + "} = globalThis.d3;"
	page := `<!DOCTYPE html><html><head><meta charset="utf-8"><script src="/d3.min.js"></script>
<script type="importmap">{"imports": {` + strings.Join(addresses, ", ") + `}}</script></head>
<body><script type="module" src="/MemoryViz.js"></script></body></html>`
	mux := http.NewServeMux()
	mux.Handle("/", http.FileServer(http.Dir(dir)))
	mux.HandleFunc("/{$}", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprint(w, page)
	})
	mux.HandleFunc("/d3.mjs", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/javascript")
		fmt.Fprint(w, module)
	})
	return mux
}
