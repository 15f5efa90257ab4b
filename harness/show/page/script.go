package page

import (
	"embed"
	"fmt"
	"image/color"
	"strings"

	"github.com/vramyard/vramyard/harness/show/chart"
)

//go:embed assets/script
var scriptFiles embed.FS

// scriptParts are the parts of the page's script. What a part needs while it is read stands before
// it.
var scriptParts = [...]string{
	"units", "dom", "palette", "data", "paint", "state", "chart", "timeline", "pixels", "easel", "map", "heap", "instant",
	"who", "failures",
	"latency", "bench", "steps", "answer", "tables", "overview", "main",
}

// pageScript returns the page's script: its parts in one function, so that they share names with
// each other and with nothing else. Only a page that is served has the part that asks for more.
func pageScript(live bool) string {
	var b strings.Builder
	b.WriteString("(() => {\n\"use strict\";\n")
	fmt.Fprintf(&b, "const LINES = { light: %s, dark: %s, turn: %d };\n", colors(chart.Light()), colors(chart.Dark()),
		chart.Turn)
	parts := scriptParts[:]
	if live {
		parts = append([]string{"live"}, parts...)
	}
	for _, part := range parts {
		text, err := scriptFiles.ReadFile("assets/script/" + part + ".js")
		if err != nil {
			panic(err) // a part that is listed and not embedded: every test of this package fails
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") { // comments are for who reads the source
				b.WriteString(line)
			}
		}
	}
	b.WriteString("})();\n")
	return b.String()
}

// plotScript returns uPlot as its authors wrote it, with an Intl of its own that makes nothing
// before it is used. uPlot asks for the reader's numbers and time zone while it is read, which our
// axes, having words of their own, never use, and which takes a browser longer than the rest of
// uPlot.
func plotScript() string {
	return strings.Replace(uplotFrame, "/* uPlot */", uplotJS, 1)
}

// colors returns colours as a list of the script.
func colors(all []color.RGBA) string {
	quoted := make([]string, len(all))
	for i, c := range all {
		quoted[i] = fmt.Sprintf(`"#%02x%02x%02x"`, c.R, c.G, c.B)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
