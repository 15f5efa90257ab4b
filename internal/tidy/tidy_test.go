package tidy

import (
	"os"
	"path/filepath"
	"testing"
)

// root returns the directory of the module that this test belongs to.
func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		up := filepath.Dir(dir)
		if up == dir {
			t.Fatal("no go.mod above the test")
		}
		dir = up
	}
}

// house parses the repository.
func house(t *testing.T) *Repository {
	t.Helper()
	h, err := Load(os.DirFS(root(t)))
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Packages) < 5 || len(h.Texts) < 20 {
		t.Fatalf("found %d packages and %d text files: the tree was not read", len(h.Packages), len(h.Texts))
	}
	return h
}

func TestRepositoryKeepsItsRules(t *testing.T) {
	h := house(t)
	open, stale := Judge(h, Rules(), Exceptions())
	for _, r := range Rules() {
		t.Run(r.Name, func(t *testing.T) {
			for _, f := range open {
				if f.Rule == r.Name {
					t.Error(f)
				}
			}
			if t.Failed() {
				t.Logf("the rule: %s", r.Doc)
			}
		})
	}
	for _, e := range stale {
		t.Errorf("the exception of rule %q for %s (%q) excuses nothing: remove it", e.Rule, e.File, e.Text)
	}
}

func TestEveryExceptionHasAReason(t *testing.T) {
	for _, e := range Exceptions() {
		if e.Reason == "" || e.File == "" {
			t.Errorf("the exception of rule %q for %q: want a file and a reason", e.Rule, e.File)
		}
	}
}

func TestFigures(t *testing.T) {
	h := house(t)
	all := Functions(h)
	t.Logf("%d functions: median %d lines, 95th percentile %d, longest %d (%s)", len(all),
		Percentile(all, 50).Lines, Percentile(all, 95).Lines, Percentile(all, 100).Lines,
		Percentile(all, 100).Name)
	for _, p := range h.Packages {
		if share, ok := Share(p); ok {
			t.Logf("%-28s %4.1f %% of the lines hold a comment", p.Dir, share)
		}
	}
}
