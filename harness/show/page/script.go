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

// scriptParts are the parts of the script, dependencies first.
var scriptParts = [...]string{
	"units", "dom", "palette", "data", "paint", "state", "chart", "timeline", "pixels", "painter", "map", "heap",
	"bins", "instant", "holders", "failures",
	"latency", "bench", "steps", "answer", "tables", "overview", "main",
}

// pageScript returns the script: its parts in one function scope. The part "live" is included only
// in a page that is served.
func pageScript(live bool) string {
	var b strings.Builder
	b.WriteString("(() => {\n\"use strict\";\n")
	fmt.Fprintf(&b, "const LINES = { light: %s, dark: %s, perMark: %d };\n", colors(chart.Light()), colors(chart.Dark()),
		chart.PerMark)
	parts := scriptParts[:]
	if live {
		parts = append([]string{"live"}, parts...)
	}
	for _, part := range parts {
		text, err := scriptFiles.ReadFile("assets/script/" + part + ".js")
		if err != nil {
			panic(err) // a listed part is not embedded: every test of this package fails
		}
		for line := range strings.Lines(string(text)) {
			if !strings.HasPrefix(strings.TrimSpace(line), "//") { // drop comments
				b.WriteString(line)
			}
		}
	}
	b.WriteString("})();\n")
	return b.String()
}

// plotScript returns uPlot with an Intl object that creates nothing before its first use. uPlot
// queries number formats and time zone when it loads, which takes longer than the rest of uPlot;
// our axes do not use them.
func plotScript() string {
	return strings.Replace(uplotFrame, "/* uPlot */", uplotJS, 1)
}

// colors formats colours as a JavaScript array.
func colors(all []color.RGBA) string {
	quoted := make([]string, len(all))
	for i, c := range all {
		quoted[i] = fmt.Sprintf(`"#%02x%02x%02x"`, c.R, c.G, c.B)
	}
	return "[" + strings.Join(quoted, ", ") + "]"
}
