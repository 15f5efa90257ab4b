package cli

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/torch"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// secrets generates texts that no output may contain.
type secrets struct {
	rng  *workload.Rand
	made []string
}

func (s *secrets) next() string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	b := []byte("q")
	for range 9 {
		b = append(b, letters[s.rng.Below(uint64(len(letters)))])
	}
	s.made = append(s.made, string(b))
	return string(b)
}

// text writes a trace with every place where a user can write.
func (s *secrets) text(t *testing.T) string {
	t.Helper()
	var b strings.Builder
	line := func(format string, args ...any) { fmt.Fprintf(&b, format+"\n", args...) }
	line("# vramyard-trace 1\n# name=%s\n# %s=1\n# framework=JAX", s.next(), s.next())
	line("# XLA_PYTHON_CLIENT_MEM_FRACTION=0.9")
	line("# XLA_PYTHON_CLIENT_ALLOCATOR=%s\n# torch=2.9.0+%s\n# limit_bytes=%s", s.next(), s.next(), s.next())
	line(`# config={"conf":"max_split_size_mb:20@%s..%s"}`, s.next(), s.next())
	line("live 7 1MiB tag=%s site=0x9ae16a3b2f90404f", s.next())
	tag := s.next()
	for step := range 3 {
		line("mark \"%s step %d\" t=%d", tag, step, 1_700_000_000_000+step)
		line("a %d 3000000 tag=%s stream=94213123 thread=%d site=0x1234567890ab", 100+step, tag, 900000+step)
		line("pool begin 77 stream=5 options=no_split\na %d 1MiB stream=5 tag=%s\npool end 77", 200+step, s.next())
		line("use %d 5\nconf \"max_split_size_mb:2 0\"", 100+step)
		line("f %d\nmark \"%s step %d end\"\npause %s\nresume %s", 100+step, tag, step, tag, tag)
	}
	line("refused 8MiB tag=%s\nmark %s\nmark \"\"", s.next(), s.next())
	return write(t, s.next()+".trace", b.String())
}

// snapshot writes a snapshot of PyTorch whose strings are secrets: files, functions, categories and
// annotations, and a setting.
func (s *secrets) snapshot(t *testing.T) string {
	t.Helper()
	in, err := os.Open("../examples/oom/layouts.pickle.gz")
	require.NoError(t, err)
	defer in.Close()
	snap, _, err := formats.ReadSnapshot(in, "layouts", formats.Options{})
	require.NoError(t, err)
	require.Greater(t, len(snap.Strings), 2)
	for i := range snap.Strings[1:] {
		snap.Strings[1+i] = "/srv/" + s.next() + "/" + s.next() + ".py"
	}
	snap.Settings = append(snap.Settings, torch.Setting{Key: s.next(), Value: `["` + s.next() + `"]`})
	var b bytes.Buffer
	require.NoError(t, torch.Write(&b, snap))
	return write(t, s.next()+".pickle", b.String())
}

// TestAnonymizeRemovesEveryText generates traces with random texts wherever a trace can have one,
// and searches the outputs for them.
func TestAnonymizeRemovesEveryText(t *testing.T) {
	s := &secrets{rng: workload.NewRand(11)}
	var files []string
	for range 3 {
		files = append(files, s.text(t), s.snapshot(t))
	}
	for _, file := range files {
		for _, to := range []string{"text", "parquet"} {
			out := filepath.Join(t.TempDir(), "out.trace")
			succeed(t, "corpus", "anonymize", "--to", to, file, out)
			raw, err := os.ReadFile(out)
			require.NoError(t, err)
			plain := succeed(t, "trace", "convert", "--to", "text", out, "-") // Parquet is compressed
			for _, secret := range s.made {
				require.NotContains(t, string(raw), secret)
				require.NotContains(t, plain, secret)
			}
			require.NotContains(t, plain, " t=")
			require.NotContains(t, plain, "9ae16a3b2f90404f")
			require.NotContains(t, plain, "94213123")
			require.NotContains(t, plain, "90000")
		}
	}
	text := succeed(t, "corpus", "anonymize", files[0], "-")
	require.Contains(t, text, "\nconf max_split_size_mb:20\n")
	require.Contains(t, text, "\n# XLA_PYTHON_CLIENT_MEM_FRACTION=0.9\n")
	require.Contains(t, text, "\n# torch=2.9.0\n")
	require.Contains(t, text, " site=0x1\n")
	require.Contains(t, text, "\npool begin 1 stream=1 options=no_split\n")
	require.Contains(t, text, "\nmark \"step c 2 end\"\n")
	require.Contains(t, text, "\nmark \"\"\n")
	require.Equal(t, text, succeed(t, "corpus", "anonymize", files[0], "-"), "equal runs give equal bytes")
}

// TestAnonymizeReadsEveryFormat searches the anonymous forms of a file of every format for words of
// its names, tags, marks and header.
func TestAnonymizeReadsEveryFormat(t *testing.T) {
	words := regexp.MustCompile(`[A-Za-z_]{4,}`)
	files, err := filepath.Glob("../harness/trace/formats/testdata/*.*")
	require.NoError(t, err)
	read := 0
	for _, file := range files {
		if strings.HasSuffix(file, ".want") {
			continue
		}
		tr, err := formats.Open(file, formats.Options{})
		require.NoError(t, err)
		out := succeed(t, "corpus", "anonymize", "--to", "text", file, "-")
		texts := append([]string{tr.Header.Name}, tr.Tags...)
		for _, p := range tr.Header.Meta {
			texts = append(texts, p.Value)
		}
		const kept = " step conf max_split_size_mb PyTorch TensorFlow falling rounded live stream " + removed
		for _, text := range texts {
			for _, word := range words.FindAllString(text, -1) {
				if !strings.Contains(kept, word) {
					require.NotRegexp(t, `\b`+word+`\b`, out, "%s: %s", file, word)
				}
			}
		}
		back, err := formats.Read(strings.NewReader(out), "out", formats.Options{})
		require.NoError(t, err)
		require.Len(t, back.Events, len(tr.Events))
		require.Equal(t, tr.Info().Kinds, back.Info().Kinds)
		require.Equal(t, tr.Info().Peak, back.Info().Peak)
		require.Equal(t, tr.Info().Lives.MedianEvents, back.Info().Lives.MedianEvents)
		read++
	}
	require.GreaterOrEqual(t, read, len(formats.Names())-2)
}

// TestAnonymousTracesGiveTheSameFigures compares all figures of compare, except times of this
// machine and the identity of the trace.
func TestAnonymousTracesGiveTheSameFigures(t *testing.T) {
	s := &secrets{rng: workload.NewRand(5)}
	text := s.text(t)
	raw, err := os.ReadFile(text)
	require.NoError(t, err)
	lines := regexp.MustCompile(`(?m)^# (torch|limit_bytes|XLA_PYTHON_CLIENT_ALLOCATOR|config)=.*\n`).ReplaceAll(raw, nil) // wrong on purpose
	require.NoError(t, os.WriteFile(text, lines, 0o600))
	for _, file := range []string{
		text, "../examples/oom/layouts.pickle.gz", "../examples/incidents/capture-ascending.trace.gz",
	} {
		out := filepath.Join(t.TempDir(), "out.trace")
		succeed(t, "corpus", "anonymize", file, out)
		want, have := exactFigures(t, file), exactFigures(t, out)
		require.NotEmpty(t, want)
		require.Equal(t, want, have, file)
		wantSteps, haveSteps := stepsOf(t, file), stepsOf(t, out)
		wantSteps.First, haveSteps.First = "", ""
		require.Equal(t, wantSteps, haveSteps, file)
	}
}

func stepsOf(t *testing.T, file string) trace.StepInfo {
	t.Helper()
	tr, err := formats.Open(file, formats.Options{})
	require.NoError(t, err)
	return tr.Info().Steps
}

// exactFigures returns the figures of compare that do not depend on the machine.
func exactFigures(t *testing.T, file string) []map[string]any {
	t.Helper()
	var r struct{ Runs []map[string]any }
	require.NoError(t, json.Unmarshal([]byte(succeed(t, "compare", "--json", "-", file)), &r))
	for _, run := range r.Runs {
		for _, key := range []string{"trace", "trace_sha256", "ns_per_op", "ns_per_op_by_reference"} {
			delete(run, key)
		}
	}
	return r.Runs
}

func TestAnonymizeRefusesWrongInput(t *testing.T) {
	good := write(t, "good.trace", small)
	dir := t.TempDir()
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{good}, `1 argument: want "vramyard corpus anonymize TRACE OUT`},
		{[]string{good, good}, good + " is a file to read"},
		{[]string{good, filepath.Join(dir, "x.pickle")}, "no trace is written as .pickle"},
		{[]string{filepath.Join(dir, "none.trace"), filepath.Join(dir, "x.trace")}, "no such file or directory"},
		{[]string{write(t, "a.trace", "a 1 100\nconf \"project:nova\"\n"), filepath.Join(dir, "x.trace")},
			`a.trace:2: settings "project:nova" may hold a name: caching: conf: unknown key "project"`},
		{[]string{write(t, "b.trace", "conf \"max_split_size_mb:20@nova..b\"\n"), filepath.Join(dir, "x.trace")},
			`want settings that hold for the whole run`},
	} {
		status, stdout, stderr := command(t, append([]string{"corpus", "anonymize"}, c.args...)...)
		require.Equal(t, exitTrouble, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
	}
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Empty(t, files)
}
