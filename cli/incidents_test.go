package cli

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/study/whatif"
)

// The columns of the table of examples/incidents/README.md that the test reads, and the one that it
// compares.
const (
	incidentName   = 1
	incidentNeeds  = 5
	incidentAnswer = 6
)

// TestWhatifAnswersTheIncidents asks about every trace of examples/incidents with the flags of its
// row, and compares the first sentence of the answer with the row.
func TestWhatifAnswersTheIncidents(t *testing.T) {
	const dir = "../examples/incidents/"
	page, err := os.ReadFile(dir + "README.md")
	require.NoError(t, err)
	lines := strings.Split(string(page), "\n")
	fixed, none := 0, 0
	for i, line := range lines {
		if !strings.HasPrefix(line, "| `") {
			continue
		}
		cells := strings.Split(line, " | ")
		name := strings.Trim(cells[incidentName-1], "|` ")
		flags := strings.Fields(strings.Trim(cells[incidentNeeds-1], "` "))
		r := whatifJSON(t, append(flags, dir+name+".trace.gz")...)
		checkIncident(t, name, r)
		if r.Answer.Verdict == whatif.Setting {
			fixed++
		} else {
			none++
		}
		cells[incidentAnswer-1] = r.Answer.Text[0] + " |"
		if got := strings.Join(cells, " | "); *rewrite {
			lines[i] = got
		} else {
			require.Equal(t, got, line, "go test ./cli -run Incidents -rewrite renews it")
		}
	}
	t.Logf("%d of %d incidents have a permitted setting, %d have none", fixed, fixed+none, none)
	require.Equal(t, 20, fixed+none)
	require.GreaterOrEqual(t, fixed, 15)
	require.Contains(t, string(page), fmt.Sprintf("%d of the %d incidents have a permitted setting.", fixed, fixed+none))
	if *rewrite {
		require.NoError(t, os.WriteFile(dir+"README.md", []byte(strings.Join(lines, "\n")), 0o600))
	}
}

// checkIncident requires that the settings of the report fail, and that the answer is a permitted
// setting that completes the run. Without an answer no setting of the framework may be both.
func checkIncident(t *testing.T, name string, r *whatif.Result) {
	t.Helper()
	answered := false
	recorded := false
	for i := range r.Runs {
		p := &r.Runs[i]
		require.NotNil(t, p.Carried, name)
		if p.Recorded {
			recorded = true
			require.False(t, *p.Carried, "%s: the settings of the report", name)
		}
		if r.Answer.Verdict == whatif.Setting && p.Label == r.Answer.Label {
			answered = true
			require.True(t, *p.Carried, name)
			require.True(t, p.Permitted(), name)
			require.Equal(t, r.Recorded.Framework, p.Export.Framework, name)
		}
		if r.Answer.Verdict != whatif.Setting && p.Export != nil && p.Export.Framework == r.Recorded.Framework {
			require.False(t, *p.Carried && p.Permitted(), "%s: %s", name, p.Label)
		}
	}
	require.True(t, recorded, name)
	require.Equal(t, r.Answer.Verdict == whatif.Setting, answered, name)
}
