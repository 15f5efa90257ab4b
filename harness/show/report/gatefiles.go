package report

import (
	"encoding/json"
	"encoding/xml"
	"fmt"
	"io"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/study/gate"
)

// The elements of JUnit's form that Jenkins, GitLab and the actions for GitHub read.
type (
	junitSuites struct {
		XMLName  xml.Name     `xml:"testsuites"`
		Name     string       `xml:"name,attr"`
		Tests    int          `xml:"tests,attr"`
		Failures int          `xml:"failures,attr"`
		Suites   []junitSuite `xml:"testsuite"`
	}
	junitSuite struct {
		Name     string      `xml:"name,attr"`
		Tests    int         `xml:"tests,attr"`
		Failures int         `xml:"failures,attr"`
		Errors   int         `xml:"errors,attr"`
		Skipped  int         `xml:"skipped,attr"`
		Cases    []junitCase `xml:"testcase"`
	}
	junitCase struct {
		Name    string        `xml:"name,attr"`
		Class   string        `xml:"classname,attr"`
		Failure *junitFailure `xml:"failure,omitempty"`
	}
	junitFailure struct {
		Message string `xml:"message,attr"`
		Type    string `xml:"type,attr"`
		Text    string `xml:",chardata"`
	}
)

// GateJUnit writes the outcome of a gate as the results of tests, in the form of JUnit: a suite for
// each recording, a test for each figure.
func GateJUnit(w io.Writer, r *gate.Report) error {
	all := junitSuites{Name: "vramyard gate"}
	for i := range r.Results {
		result := &r.Results[i]
		s := junitSuite{Name: result.Name}
		for k := range result.Checks {
			c := &result.Checks[k]
			test := junitCase{Name: fmt.Sprintf("%s, %s pool", c.Figure, c.State), Class: result.Name}
			if c.Verdict == gate.Violated {
				test.Failure = &junitFailure{Message: violation(result, c), Type: string(c.Figure), Text: because(result)}
				s.Failures++
			}
			s.Cases = append(s.Cases, test)
		}
		all.add(s)
	}
	for _, name := range r.Missing {
		all.add(junitSuite{Name: name, Failures: 1, Cases: []junitCase{
			{Name: "recording", Class: name, Failure: &junitFailure{Message: missing(name), Type: "missing"}},
		}})
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	e := xml.NewEncoder(w)
	e.Indent("", "  ")
	if err := e.Encode(all); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (j *junitSuites) add(s junitSuite) {
	s.Tests = len(s.Cases)
	j.Tests += s.Tests
	j.Failures += s.Failures
	j.Suites = append(j.Suites, s)
}

// violation describes a violated figure.
func violation(r *gate.Result, c *gate.Check) string {
	return fmt.Sprintf("%s: %s is %s in the state %q, the budget is %s", r.Name,
		strings.ReplaceAll(string(c.Figure), "_", " "), c.Shown(c.Now), c.State, c.Shown(c.Budget))
}

// because lists the causes of a regression with their stacks.
func because(r *gate.Result) string {
	var t strings.Builder
	for i := range r.Causes {
		if i == mostCauses {
			break
		}
		c := &r.Causes[i]
		fmt.Fprintf(&t, "%s at %s\n", c.String(), c.At)
		for _, line := range c.Lines {
			fmt.Fprintf(&t, "    %s\n", line)
		}
	}
	return t.String()
}

// The parts of SARIF 2.1.0 that a code scanner reads.
type (
	sarifLog struct {
		Schema  string     `json:"$schema"`
		Version string     `json:"version"`
		Runs    []sarifRun `json:"runs"`
	}
	sarifRun struct {
		Tool    sarifTool     `json:"tool"`
		Results []sarifResult `json:"results"`
	}
	sarifTool struct {
		Driver sarifDriver `json:"driver"`
	}
	sarifDriver struct {
		Name           string      `json:"name"`
		Version        string      `json:"version"`
		InformationURI string      `json:"informationUri"`
		Rules          []sarifRule `json:"rules"`
	}
	sarifRule struct {
		ID    string    `json:"id"`
		Short sarifText `json:"shortDescription"`
	}
	sarifText struct {
		Text string `json:"text"`
	}
	sarifResult struct {
		RuleID       string            `json:"ruleId"`
		Level        string            `json:"level"`
		Message      sarifText         `json:"message"`
		Locations    []sarifLocation   `json:"locations"`
		Fingerprints map[string]string `json:"partialFingerprints"`
	}
	sarifLocation struct {
		Physical sarifPhysical `json:"physicalLocation"`
	}
	sarifPhysical struct {
		Artifact sarifArtifact `json:"artifactLocation"`
		Region   sarifRegion   `json:"region"`
	}
	sarifArtifact struct {
		URI string `json:"uri"`
	}
	sarifRegion struct {
		Line int `json:"startLine"`
	}
)

// ruleMissing is the rule of a budget without its recording.
const ruleMissing = "missing"

// ruleTexts describes the rules, by figure.
var ruleTexts = map[string]string{
	string(gate.MinCapacity):  "The work needs a larger device",
	string(gate.PeakReserved): "The work reserves more memory",
	string(gate.PeakLive):     "The work has more live bytes at its peak",
	string(gate.DeviceCalls):  "The work makes more calls to the device",
	ruleMissing:               "A recording of the budget is not judged",
}

// GateSARIF writes the violations of a gate as SARIF 2.1.0. A violation is at the call site of the
// block that explains most of it, if that file is below root, else at the budget.
func GateSARIF(w io.Writer, r *gate.Report, root string) error {
	run := sarifRun{Results: []sarifResult{}, Tool: sarifTool{sarifDriver{
		Name: "vramyard", Version: r.Provenance.Version, InformationURI: "https://github.com/vramyard/vramyard",
	}}}
	rule := func(id string) {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{id, sarifText{ruleTexts[id]}})
	}
	for _, f := range gate.FigureNames {
		rule(string(f))
	}
	rule(ruleMissing)
	budget := relative(r.Baseline, root)
	if budget == "" {
		budget = filepath.Base(r.Baseline)
	}
	add := func(id, text, fingerprint string, at sarifPhysical) {
		run.Results = append(run.Results, sarifResult{
			RuleID: id, Level: "error", Message: sarifText{text}, Locations: []sarifLocation{{at}},
			Fingerprints: map[string]string{"vramyardGate/v1": fingerprint},
		})
	}
	for i := range r.Results {
		result := &r.Results[i]
		at := sarifPhysical{artifact(budget), sarifRegion{max(result.Line, 1)}}
		if len(result.Causes) > 0 {
			if found, ok := physical(result.Causes[0].Lines, root); ok {
				at = found
			}
		}
		for k := range result.Checks {
			if c := &result.Checks[k]; c.Verdict == gate.Violated {
				text := violation(result, c)
				if why := because(result); why != "" {
					text += "\n" + why
				}
				add(string(c.Figure), text, fmt.Sprintf("%s/%s/%s", result.Name, c.State, c.Figure), at)
			}
		}
	}
	for _, name := range r.Missing {
		add(ruleMissing, missing(name), name+"/"+ruleMissing, sarifPhysical{artifact(budget), sarifRegion{1}})
	}
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

// fileAndLine is the beginning of a line of a stack.
var fileAndLine = regexp.MustCompile(`^(.+?):(\d+) `)

// physical returns the innermost line of a stack whose file is below root.
func physical(lines []string, root string) (sarifPhysical, bool) {
	for _, line := range lines {
		m := fileAndLine.FindStringSubmatch(line)
		if m == nil {
			continue
		}
		n, err := strconv.Atoi(m[2])
		at := relative(m[1], root)
		if at == "" || err != nil || n < 1 {
			continue
		}
		if _, err := os.Stat(filepath.Join(root, at)); err == nil { // paths of packages are shortened
			return sarifPhysical{artifact(at), sarifRegion{n}}, true
		}
	}
	return sarifPhysical{}, false
}

// artifact returns the location of a file below the root.
func artifact(path string) sarifArtifact { return sarifArtifact{(&url.URL{Path: path}).String()} }

// relative returns a path relative to root with forward slashes, "" if it is not below root.
func relative(path, root string) string {
	if !filepath.IsAbs(path) {
		path = filepath.Join(root, path)
	}
	rel, err := filepath.Rel(root, path)
	if err != nil || rel == ".." || strings.HasPrefix(rel, ".."+string(filepath.Separator)) {
		return ""
	}
	return filepath.ToSlash(rel)
}
