package main

import (
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// errNoBrowser is returned where there is no Chromium.
var errNoBrowser = errors.New("no chromium on the path (on Debian: apt-get install chromium)")

func start(ctx context.Context) (context.Context, context.CancelFunc, error) {
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		path, err := exec.LookPath(name)
		if err != nil {
			continue
		}
		// The pages are our own and lie on this machine; in a container there is no sandbox to be had.
		opts := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.NoSandbox,
			chromedp.DisableGPU, chromedp.Flag("hide-scrollbars", true), chromedp.Flag("force-color-profile", "srgb"))
		ctx, stop := chromedp.NewExecAllocator(ctx, opts...)
		ctx, cancel := chromedp.NewContext(ctx)
		both := func() { cancel(); stop() }
		if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
			both()
			return nil, nil, fmt.Errorf("start %s: %w", path, err)
		}
		return ctx, both, nil
	}
	return nil, nil, errNoBrowser
}

// tab is a page in a browser, with its errors.
type tab struct {
	ctx   context.Context
	close context.CancelFunc

	mu       sync.Mutex
	own      string   // the address that is shown
	requests []string // addresses it asked for, but for itself and data it holds
	errors   []string // logged errors and warnings, messages of the browser, exceptions
}

// look is how a page is looked at.
type look struct {
	name          string
	width, height int64
	dark, print   bool
}

// blank opens an empty tab that is listened to.
func blank(browser context.Context, l look) (*tab, error) {
	ctx, cancel := chromedp.NewContext(browser)
	t := &tab{ctx: ctx, close: cancel}
	media := emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}}
	if l.dark {
		media.Features[0].Value = "dark"
	}
	err := chromedp.Do(ctx, chromedp.Navigate("about:blank"))
	if err == nil {
		err = chromedp.Listen(ctx, t.hear)
	}
	if err == nil {
		_, err = chromedp.Call(ctx, network.Enable, network.EnableParams{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, log.Enable, struct{}{})
	}
	if err == nil {
		_, err = chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
	}
	if err == nil {
		err = chromedp.Do(ctx, chromedp.EmulateViewport(l.width, l.height))
	}
	if err != nil {
		cancel()
		return nil, err
	}
	return t, nil
}

// drawn holds as soon as a page of ours shows its first picture, or that it has none.
const drawn = `performance.getEntriesByName("vy-picture").length > 0 || document.getElementById("vy-app")?.dataset.state === "none"`

// open opens a file or a URL and waits until its pictures are drawn, if it has any. first are
// scripts that run before those of the page.
func open(browser context.Context, path string, l look, hash string, first ...string) (*tab, error) {
	t, err := blank(browser, l)
	if err != nil {
		return nil, err
	}
	for _, text := range first {
		p := page.AddScriptToEvaluateOnNewDocumentParams{Source: text}
		if _, err := chromedp.Call(t.ctx, page.AddScriptToEvaluateOnNewDocument, p); err != nil {
			t.close()
			return nil, err
		}
	}
	if !strings.Contains(path, "://") {
		path = "file://" + path
	}
	t.own = path
	if err := chromedp.Do(t.ctx, chromedp.Navigate(path+hash)); err != nil {
		t.close()
		return nil, err
	}
	if err := t.wait(drawn); err != nil {
		t.close()
		return nil, fmt.Errorf("%s: %w (%s)", path, err, strings.Join(t.errors, "; "))
	}
	if err := t.settle(); err != nil { // pictures below the first are drawn after it
		t.close()
		return nil, err
	}
	return t, nil
}

// hear handles an event of the browser.
func (t *tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; url != t.own && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			t.requests = append(t.requests, url)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		t.errors = append(t.errors, text)
	case *log.EventEntryAdded:
		// That reading pixels is slow is said to the tests, which do so.
		slow := strings.HasPrefix(e.Entry.Text, "Canvas2D: Multiple readback")
		if (e.Entry.Level == log.EntryLevelError || e.Entry.Level == log.EntryLevelWarning) && !slow {
			t.errors = append(t.errors, e.Entry.Text)
		}
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" {
			text := string(e.Type)
			for _, a := range e.Args {
				text += " " + string(a.Value) + a.Description
			}
			t.errors = append(t.errors, text)
		}
	}
}

// wait waits until an expression of the page is true.
func (t *tab) wait(expression string) error {
	_, err := chromedp.Run(t.ctx, chromedp.Poll[bool](expression,
		chromedp.WithPollingInterval(20*time.Millisecond), chromedp.WithPollingTimeout(time.Minute)))
	return err
}

// settle waits until the page has drawn what was changed.
func (t *tab) settle() error {
	_, err := eval[bool](t, `new Promise(done => {
		const look = () => requestAnimationFrame(() => ["painting", "late"].every(what => (document.documentElement.dataset[what] ?? "0") === "0") ? done(true) : look());
		requestAnimationFrame(look);
	})`)
	return err
}

// eval returns the value of an expression of the page. A promise is waited for.
func eval[T any](t *tab, expression string) (T, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}
