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
	"github.com/chromedp/cdproto/network"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// errNoBrowser is returned where there is no Chromium.
var errNoBrowser = errors.New("no chromium on the path (on Debian: apt-get install chromium)")

// start starts a browser for the time of a context.
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

// tab is a page in a browser, and what it did beside being shown.
type tab struct {
	ctx   context.Context
	close context.CancelFunc

	mu       sync.Mutex
	requests []string // addresses it asked for, but for itself and data it holds
	errors   []string // what it logged as errors or warnings, and exceptions
}

// look is how a page is looked at.
type look struct {
	name          string
	width, height int64
	dark, print   bool
}

// open opens a file, or an address that is served, and waits for its first picture, if it has any.
func open(browser context.Context, path string, l look, hash string) (*tab, error) {
	ctx, cancel := chromedp.NewContext(browser)
	t := &tab{ctx: ctx, close: cancel}
	if err := chromedp.Do(ctx, chromedp.Navigate("about:blank")); err != nil {
		cancel()
		return nil, err
	}
	if err := chromedp.Listen(ctx, t.hear); err != nil {
		cancel()
		return nil, err
	}
	media := emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: "light"}}}
	if l.dark {
		media.Features[0].Value = "dark"
	}
	if _, err := chromedp.Call(ctx, network.Enable, network.EnableParams{}); err != nil {
		cancel()
		return nil, err
	}
	if _, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media); err != nil {
		cancel()
		return nil, err
	}
	if !strings.Contains(path, "://") {
		path = "file://" + path
	}
	steps := []chromedp.Action[chromedp.Void]{chromedp.EmulateViewport(l.width, l.height), chromedp.Navigate(path + hash)}
	if err := chromedp.Do(ctx, steps...); err != nil {
		cancel()
		return nil, err
	}
	ready := `performance.getEntriesByName("vy-picture").length > 0 || document.getElementById("vy-app").dataset.state === "none"`
	if err := t.wait(ready); err != nil {
		cancel()
		return nil, fmt.Errorf("%s: %w (%s)", path, err, strings.Join(t.errors, "; "))
	}
	return t, nil
}

// hear takes what the browser tells of the page.
func (t *tab) hear(event any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	switch e := event.(type) {
	case *network.EventRequestWillBeSent:
		if url := e.Request.URL; !strings.HasPrefix(url, "file:") && !strings.HasPrefix(url, "data:") && !strings.HasPrefix(url, "blob:") {
			t.requests = append(t.requests, url)
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		t.errors = append(t.errors, text)
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
		const look = () => requestAnimationFrame(() => (document.documentElement.dataset.painting ?? "0") === "0" ? done(true) : look());
		requestAnimationFrame(look);
	})`)
	return err
}

// eval returns the value of an expression of the page. A promise is waited for.
func eval[T any](t *tab, expression string) (T, error) {
	return chromedp.Run(t.ctx, chromedp.Evaluate[T](expression, chromedp.EvalAwaitPromise))
}
