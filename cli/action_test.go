package cli

import (
	"errors"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"go.yaml.in/yaml/v4"

	"github.com/vramyard/vramyard/harness/provenance"
)

// githubAction is action.yml.
type githubAction struct {
	Name        string            `yaml:"name"`
	Description string            `yaml:"description"`
	Branding    map[string]string `yaml:"branding"`
	Inputs      map[string]struct {
		Description string `yaml:"description"`
		Required    bool   `yaml:"required"`
		Default     string `yaml:"default"`
	} `yaml:"inputs"`
	Outputs map[string]struct {
		Description string `yaml:"description"`
		Value       string `yaml:"value"`
	} `yaml:"outputs"`
	Runs struct {
		Using string       `yaml:"using"`
		Steps []githubStep `yaml:"steps"`
	} `yaml:"runs"`
}

type githubStep struct {
	Name  string            `yaml:"name"`
	ID    string            `yaml:"id"`
	If    string            `yaml:"if"`
	Shell string            `yaml:"shell"`
	Run   string            `yaml:"run"`
	Uses  string            `yaml:"uses"`
	With  map[string]string `yaml:"with"`
	Env   map[string]string `yaml:"env"`
}

func actionFile(t *testing.T) (a githubAction) {
	t.Helper()
	require.NoError(t, yaml.Load([]byte(content(t, "../action.yml")), &a, yaml.WithKnownFields()))
	return a
}

// job runs the steps of an action on this machine, as a runner of GitHub would.
type job struct {
	t      *testing.T
	values map[string]string // of expressions
	env    []string
	files  string // folder of GITHUB_OUTPUT and others
	stdout strings.Builder
	used   []string // actions that steps use
}

var expression = regexp.MustCompile(`\$\{\{ *([\w.-]+) *\}\}`)

func (j *job) expand(s string) string {
	return expression.ReplaceAllStringFunc(s, func(e string) string {
		name := expression.FindStringSubmatch(e)[1]
		value, ok := j.values[name]
		require.True(j.t, ok || strings.HasPrefix(name, "steps."), "%s has no value", name)
		return value
	})
}

// holds evaluates conditions of the form a == 'x' && b != 'y'.
func (j *job) holds(condition string) bool {
	if condition == "" {
		return true
	}
	for part := range strings.SplitSeq(condition, "&&") {
		m := regexp.MustCompile(`^([\w.-]+) (==|!=) '(.*)'$`).FindStringSubmatch(strings.TrimSpace(part))
		require.NotNil(j.t, m, part)
		if (j.values[m[1]] == m[3]) != (m[2] == "==") {
			return false
		}
	}
	return true
}

// run runs all steps until one fails, and returns its exit status.
func (j *job) run(a githubAction) int {
	for _, s := range a.Runs.Steps {
		if !j.holds(s.If) {
			continue
		}
		if s.Uses != "" {
			j.used = append(j.used, s.Uses+" "+j.expand(s.With["sarif_file"]))
			continue
		}
		require.Equal(j.t, "bash", s.Shell)
		output, script := filepath.Join(j.files, "output"), filepath.Join(j.files, "script.sh")
		require.NoError(j.t, os.WriteFile(output, nil, 0o600))
		require.NoError(j.t, os.WriteFile(script, []byte(s.Run), 0o600))
		c := exec.CommandContext(j.t.Context(), "bash", "--noprofile", "--norc", "-eo", "pipefail", script)
		c.Env = append(slices.Clone(j.env), "GITHUB_OUTPUT="+output)
		for name, value := range s.Env {
			c.Env = append(c.Env, name+"="+j.expand(value))
		}
		c.Stdout, c.Stderr = &j.stdout, &j.stdout
		err := c.Run()
		for line := range strings.Lines(content(j.t, output)) {
			name, value, _ := strings.Cut(strings.TrimSpace(line), "=")
			j.values["steps."+s.ID+".outputs."+name] = value
		}
		if failed, ok := errors.AsType[*exec.ExitError](err); ok {
			return failed.ExitCode()
		}
		require.NoError(j.t, err)
	}
	return 0
}

// newJob returns a job with inputs. Its program is this test, and gh a script that logs its calls.
func newJob(t *testing.T, a githubAction, inputs map[string]string) *job {
	t.Helper()
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("needs bash")
	}
	exe, err := os.Executable()
	require.NoError(t, err)
	j := &job{t: t, files: t.TempDir(), values: map[string]string{
		"github.token": "secret", "github.repository": "owner/name", "github.event.pull_request.number": "7",
	}}
	for name, in := range a.Inputs {
		j.values["inputs."+name] = in.Default
	}
	j.values["inputs.program"] = exe
	for name, value := range inputs {
		require.Contains(t, a.Inputs, name)
		j.values["inputs."+name] = value
	}
	bin := filepath.Join(j.files, "bin")
	require.NoError(t, os.Mkdir(bin, 0o700))
	gh := "#!/bin/bash\nprintf '%s\\n' \"$*\" >>\"$GH_LOG\"\n[ -z \"$GH_FAILS\" ] || exit 1\n" +
		"case $* in *--paginate*) cat \"$GH_OLD\" ;; esac\n"
	require.NoError(t, os.WriteFile(filepath.Join(bin, "gh"), []byte(gh), 0o700))
	require.NoError(t, os.WriteFile(filepath.Join(j.files, "old"), nil, 0o600))
	j.env = append(os.Environ(), asCommand+"=quiet", "PATH="+bin+string(os.PathListSeparator)+os.Getenv("PATH"),
		"RUNNER_TEMP="+j.files, "GITHUB_STEP_SUMMARY="+filepath.Join(j.files, "summary"),
		"GH_LOG="+filepath.Join(j.files, "log"), "GH_OLD="+filepath.Join(j.files, "old"), "GH_FAILS=")
	return j
}

func (j *job) file(name string) string {
	text, _ := os.ReadFile(filepath.Join(j.files, name)) // "" if there is none
	return string(text)
}

// TestActionRunsTheGate runs the steps of action.yml on a budget that holds, one that is violated,
// and on recordings that cannot be judged.
func TestActionRunsTheGate(t *testing.T) {
	a := actionFile(t)
	budget := filepath.Join(t.TempDir(), "budget.yaml")
	good := write(t, "train.trace", histories("")["alone"])
	bad := write(t, "train.trace", histories("a 9 2MiB tag=activation:added\n")["fragmented"])
	succeed(t, "gate", "--baseline", budget, "--update", good)

	j := newJob(t, a, map[string]string{"baseline": budget, "snapshots": filepath.Dir(good) + "/*.trace"})
	require.Equal(t, exitDone, j.run(a), j.stdout.String())
	require.Contains(t, j.file("summary"), "### GPU memory: within the budget")
	require.Equal(t, "false", j.values["steps.judge.outputs.violated"])
	require.Empty(t, j.file("log"), "no comment is wanted")
	require.Empty(t, j.used)
	for name, out := range a.Outputs {
		require.NotEmpty(t, j.expand(out.Value), name)
	}

	j = newJob(t, a, map[string]string{"baseline": budget, "snapshots": bad, "comment": "true", "sarif": "true"})
	require.Equal(t, exitFailed, j.run(a), j.stdout.String())
	require.Contains(t, j.stdout.String(), "::error title=GPU memory::vramyard: "+budget+": 8 violated: train\n")
	require.Contains(t, j.file("summary"), "1 block of 2.00 MiB added")
	require.Equal(t, "true", j.values["steps.judge.outputs.violated"])
	require.Regexp(t, `^api --paginate repos/owner/name/issues/7/comments --jq .*\n`+
		`api --silent --method POST repos/owner/name/issues/7/comments -F body=@.*\n$`, j.file("log"))
	require.Equal(t, []string{"github/codeql-action/upload-sarif@v4 " + j.values["steps.judge.outputs.sarif"]}, j.used)
	require.Contains(t, content(t, j.values["steps.judge.outputs.sarif"]), `"2.1.0"`)

	require.NoError(t, os.WriteFile(filepath.Join(j.files, "old"), []byte("123\n456\n"), 0o600))
	require.Equal(t, exitFailed, j.run(a))
	require.Contains(t, j.file("log"), "--method PATCH repos/owner/name/issues/comments/123 -F body=@")
	j.env = append(j.env, "GH_FAILS=1")
	require.Equal(t, exitFailed, j.run(a), "a comment that cannot be written does not change the verdict")
	require.Contains(t, j.stdout.String(), "::warning title=GPU memory::the comments of the pull request cannot be read")

	for snapshots, want := range map[string]string{
		"/nowhere/*.pickle": "::error title=GPU memory::no file matches /nowhere/*.pickle",
		"/nowhere/a.pickle": "::error title=GPU memory::vramyard: /nowhere/a.pickle: no such file or directory",
	} {
		j = newJob(t, a, map[string]string{"baseline": budget, "snapshots": snapshots, "comment": "true"})
		require.Equal(t, exitTrouble, j.run(a))
		require.Contains(t, j.stdout.String(), want)
		require.Empty(t, j.file("log"))
	}
}

// TestActionIsWellFormed requires what GitHub requires of a composite action, and that every
// expression names something.
func TestActionIsWellFormed(t *testing.T) {
	a := actionFile(t)
	require.NotEmpty(t, a.Name)
	require.NotEmpty(t, a.Description)
	require.Equal(t, "composite", a.Runs.Using)
	page := content(t, "../docs/gate.md")
	for name, in := range a.Inputs {
		require.NotEmpty(t, in.Description, name)
		require.Contains(t, page, "| `"+name+"` |")
	}
	for name := range a.Outputs {
		require.Contains(t, page, "`"+name+"`")
	}
	ids := map[string]bool{}
	for _, s := range a.Runs.Steps {
		require.NotEmpty(t, s.Name)
		require.NotEqual(t, s.Run == "", s.Uses == "", s.Name)
		require.Equal(t, s.Run != "", s.Shell != "", s.Name)
		require.NotContains(t, s.Run, "${{", "inputs reach scripts as variables: %s", s.Name)
		for value := range maps.Values(s.Env) {
			for _, m := range expression.FindAllStringSubmatch(value, -1) {
				if name, ok := strings.CutPrefix(m[1], "inputs."); ok {
					require.Contains(t, a.Inputs, name)
				}
				if rest, ok := strings.CutPrefix(m[1], "steps."); ok {
					id, _, _ := strings.Cut(rest, ".")
					require.True(t, ids[id], "%s: no step %s before it", s.Name, id)
				}
			}
		}
		ids[s.ID] = true
	}
}

func TestActionInstallsItsOwnVersion(t *testing.T) {
	require.Equal(t, provenance.Version, actionFile(t).Inputs["version"].Default)
}
