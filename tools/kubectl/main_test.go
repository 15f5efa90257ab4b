package main

import (
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
)

// recipe is the manifest under test.
const recipe = "../../examples/sweep/kubernetes.yaml"

func manifest(t *testing.T) string {
	t.Helper()
	content, err := os.ReadFile(recipe)
	if err != nil {
		t.Fatal(err)
	}
	return string(content)
}

func TestWrongManifests(t *testing.T) {
	for _, c := range []struct{ from, to, want string }{
		{"completions:", "completion:", `unknown field "completion"`},
		{"values: [75]", "values: [0, 75]", "exit codes [0 75]"},
		{"values: [1, 3]", "values: [3, 1]", "exit codes [3 1]"},
		{"restartPolicy: Never", "restartPolicy: OnFailure", "restartPolicy Never"},
		{"backoffLimitPerIndex: 3", "backoffLimitPerIndex: three", "cannot unmarshal string"},
	} {
		text := manifest(t)
		if !strings.Contains(text, c.from) {
			t.Fatalf("the manifest has no %q", c.from)
		}
		if _, err := decode([]byte(strings.Replace(text, c.from, c.to, 1))); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v: want %s", c.to, err, c.want)
		}
	}
}

// TestRepetitions runs the Job with a program that ends in another way on each index.
func TestRepetitions(t *testing.T) {
	dir := t.TempDir()
	program := `#!/bin/sh
n=$(cat ` + dir + `/$JOB_COMPLETION_INDEX 2>/dev/null || echo 0)
echo $((n + 1)) >` + dir + `/$JOB_COMPLETION_INDEX
[ "$2 $4 $5 $KEY" = "run --shard auto/8 1" ] || exit 9
case $JOB_COMPLETION_INDEX in
1) [ "$n" -ge 5 ] || exit 75 ;; # is ended by SIGTERM more often than failures are permitted
2) [ "$n" -ge 3 ] || kill -9 $$ ;;
3) exit 2 ;;
4) exit 3 ;;
5) exit 1 ;;
esac
`
	if err := os.WriteFile(filepath.Join(dir, "vramyard"), []byte(program), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+":"+os.Getenv("PATH"))
	c := cluster(t.TempDir())
	env := filepath.Join(dir, "env")
	if err := os.WriteFile(env, []byte("KEY=1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"create configmap sweep-plan --from-file " + env,
		"create secret generic sweep-store --from-env-file " + env} {
		if err := command(c, strings.Fields(line)); err != nil {
			t.Fatal(err)
		}
	}
	job, err := decode([]byte(manifest(t)))
	if err != nil {
		t.Fatal(err)
	}
	r, err := newRunner(c, job)
	if err != nil {
		t.Fatal(err)
	}
	starts, failed := r.run()
	if want := []int{1, 6, 4, 4, 1, 1, 1, 1}; !reflect.DeepEqual(starts, want) {
		t.Errorf("starts of the indexes %v: want %v", starts, want)
	}
	if want := []int{3, 4, 5}; !reflect.DeepEqual(failed, want) {
		t.Errorf("failed indexes %v: want %v", failed, want)
	}
}
