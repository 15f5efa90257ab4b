package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
)

// looks are the ways to look at a page.
var looks = []look{
	{name: "light", width: 1280, height: 900},
	{name: "dark", width: 1280, height: 900, dark: true},
	{name: "phone", width: 360, height: 740},
	{name: "print", width: 1280, height: 900, print: true},
}

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: browser DIR [FILE...] or browser beside VIZ SNAPSHOT...")
		os.Exit(2)
	}
	var err error
	if os.Args[1] == "beside" {
		err = besideMain(context.Background(), os.Args[2:])
	} else {
		err = shoot(context.Background(), os.Args[1], os.Args[2:])
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "browser:", err)
		os.Exit(1)
	}
}

// shoot writes pictures of every view of every report, as looked at in every way.
func shoot(ctx context.Context, dir string, paths []string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return err
	}
	if len(paths) == 0 {
		temporary, err := os.MkdirTemp("", "vramyard")
		if err != nil {
			return err
		}
		defer os.RemoveAll(temporary)
		if paths, err = examples(ctx, temporary); err != nil {
			return err
		}
	}
	browser, stop, err := start(ctx)
	if err != nil {
		return err
	}
	defer stop()
	for _, path := range paths {
		if path, err = filepath.Abs(path); err != nil {
			return err
		}
		for _, l := range looks {
			if err := shootOne(browser, dir, path, l); err != nil {
				return fmt.Errorf("%s, %s: %w", path, l.name, err)
			}
		}
	}
	return nil
}

// shootOne writes the pictures of one report in one way: a page as PDF, or a picture for each view.
func shootOne(browser context.Context, dir, path string, l look) error {
	t, err := open(browser, path, l, "")
	if err != nil {
		return err
	}
	defer t.close()
	name := filepath.Join(dir, strings.TrimSuffix(filepath.Base(path), ".html")+"-"+l.name)
	if _, err := eval[bool](t, `document.querySelectorAll("details").forEach(d => d.open = true), true`); err != nil {
		return err
	}
	if err := t.settle(); err != nil {
		return err
	}
	if l.print {
		pdf, err := chromedp.Run(t.ctx, chromedp.PrintToPDF(chromedp.PDFPreferCSSPageSize()))
		if err != nil {
			return err
		}
		return os.WriteFile(name+".pdf", pdf, 0o666)
	}
	type view struct {
		ID         string
		X, Y, W, H float64
	}
	views, err := eval[[]view](t,
		`[...document.querySelectorAll("header, .vy-bar, section")].filter(s => s.offsetHeight).map(s => {
		const r = s.getBoundingClientRect();
		return {ID: s.id || s.className || "head", X: 0, Y: r.top + scrollY, W: innerWidth, H: Math.min(r.height + 12, 4000)};
	})`)
	if err != nil {
		return err
	}
	// The bar that sticks to the top of the window would cover part of a view higher than the window.
	if _, err := eval[bool](t, `document.querySelector(".vy-bar")?.style.setProperty("position", "static"), true`); err !=
		nil {
		return err
	}
	for _, v := range views {
		beyond := true
		shot, err := chromedp.Call(t.ctx, page.CaptureScreenshot, page.CaptureScreenshotParams{
			CaptureBeyondViewport: &beyond, Clip: &page.Viewport{X: v.X, Y: v.Y, Width: v.W, Height: v.H, Scale: 1},
		})
		if err != nil {
			return err
		}
		if err := os.WriteFile(name+"-"+strings.TrimPrefix(v.ID, "vy-")+".png", shot.Data, 0o666); err != nil {
			return err
		}
	}
	return nil
}
