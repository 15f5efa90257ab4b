package cli

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/corpus"
)

// emptyCache gives the test a folder for caches of its own, and returns the folder of the corpus.
func emptyCache(t *testing.T) string {
	t.Helper()
	home := t.TempDir()
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData"} {
		t.Setenv(name, home)
	}
	dir, err := corpus.Dir()
	require.NoError(t, err)
	return dir
}

// states returns the states of all traces of the list.
func states(t *testing.T, args ...string) map[string]string {
	t.Helper()
	var l corpusList
	out := succeed(t, append([]string{"corpus", "list", "--json", "-"}, args...)...)
	require.NoError(t, json.Unmarshal([]byte(out), &l))
	require.Equal(t, corpus.Schema, l.Schema)
	all := map[string]string{}
	for _, r := range l.Traces {
		all[r.Name] = r.State
	}
	require.Len(t, all, len(corpus.Names()))
	return all
}

func TestFetchedTracesAreUsedByName(t *testing.T) {
	dir := emptyCache(t)
	for _, args := range [][]string{{"trace", "info"}, {"compare"}, {"corpus", "verify"}} {
		status, stdout, stderr := command(t, append(args, "oom_chat")...)
		require.Equal(t, exitTrouble, status)
		require.Empty(t, stdout)
		require.Equal(t, "vramyard: oom_chat: a trace of the corpus that is not fetched: run "+
			"\"vramyard corpus fetch oom_chat\", in a clone with --from corpus\n", stderr)
	}
	require.Equal(t, "2 traces fetched to "+dir+", 0 intact before, 1 inside the program\n",
		succeed(t, "corpus", "fetch", "--from", "../corpus", "oom_chat", "oom_layouts", "cpu_unet_train"))
	require.Contains(t, succeed(t, "trace", "info", "oom_chat"), "oom_chat (text), sha256 a72a161b6cb0")
	list := states(t)
	require.Equal(t, stateFetched, list["oom_chat"])
	require.Equal(t, stateInside, list["cpu_unet_train"])
	require.Equal(t, stateAbsent, list["meta_gpt2xl_amp"])
	require.Contains(t, succeed(t, "corpus", "list"), "not fetched")
	require.Equal(t, "2 of 2 traces as on the card, 0 not fetched\n",
		succeed(t, "corpus", "verify", "oom_chat", "cpu_unet_train"))
	require.Contains(t, succeed(t, "corpus", "verify"), "9 of 9 traces as on the card, 37 not fetched")

	card, _ := corpus.Lookup("oom_chat")
	require.NoError(t, os.WriteFile(card.Path(dir), []byte("a 1 5\n"), 0o600))
	status, _, stderr := command(t, "trace", "info", "oom_chat")
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, `has the SHA-256`)
	status, stdout, stderr := command(t, "corpus", "verify", "oom_chat")
	require.Equal(t, exitFailed, status)
	require.Equal(t, "0 of 1 trace as on the card, 0 not fetched\n", stdout)
	require.Contains(t, stderr, "1 of 1 trace differ")
	out := succeed(t, "corpus", "fetch", "--from", "../corpus", "oom_chat")
	require.Contains(t, out, "1 trace fetched", "it is replaced")
}

func fetchedFiles(t *testing.T, dir string) (names []string) {
	t.Helper()
	files, err := os.ReadDir(dir)
	require.NoError(t, err)
	for _, f := range files {
		names = append(names, f.Name())
	}
	return names
}

// TestFetchFromAServer also continues a fetch of which the server refused a part, and fetches from
// the folder of an earlier fetch.
func TestFetchFromAServer(t *testing.T) {
	emptyCache(t)
	refuses := true
	chat, _ := corpus.Lookup("oom_chat")
	files := http.FileServer(http.Dir("../corpus"))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if refuses && strings.HasSuffix(r.URL.Path, chat.Object) {
			http.Error(w, "not now", http.StatusServiceUnavailable)
			return
		}
		files.ServeHTTP(w, r)
	}))
	defer server.Close()
	dir := filepath.Join(t.TempDir(), "new", "folder")
	args := []string{"corpus", "fetch", "--from", server.URL, "--dir", dir, "oom_layouts", "oom_chat"}
	status, _, stderr := command(t, args...)
	require.Equal(t, exitTrouble, status)
	require.Equal(t, "vramyard: oom_chat: "+server.URL+"/"+chat.Object+": 503 Service Unavailable\n", stderr)
	require.Equal(t, stateFetched, states(t, "--dir", dir)["oom_layouts"])
	refuses = false
	require.Contains(t, succeed(t, args...), "1 trace fetched to "+dir+", 1 intact before, 0 inside")
	require.Contains(t, succeed(t, args...), "0 traces fetched to "+dir+", 2 intact before, 0 inside")
	again := t.TempDir()
	out := succeed(t, "corpus", "fetch", "--from", dir, "--dir", again, "oom_layouts", "oom_chat")
	require.Contains(t, out, "2 traces fetched")
	require.Equal(t, fetchedFiles(t, dir), fetchedFiles(t, again))
}

// TestFetchKeepsNothingWrong has archives whose objects are not what their names say.
func TestFetchKeepsNothingWrong(t *testing.T) {
	chat, _ := corpus.Lookup("oom_chat")
	for content, want := range map[string]string{
		"a 1 5\n":                              "has the SHA-256 ",
		"":                                     "has the SHA-256 e3b0c44298fc…",
		strings.Repeat("a", int(chat.Bytes)*2): "has more than ",
		"\x1f\x8b\x08\x00cut":                  ": gzip data ",
	} {
		archive, dir := t.TempDir(), t.TempDir()
		require.NoError(t, os.WriteFile(filepath.Join(archive, chat.Object), []byte(content), 0o600))
		status, stdout, stderr := command(t, "corpus", "fetch", "--from", archive, "--dir", dir, "oom_chat")
		require.Equal(t, exitTrouble, status)
		require.Empty(t, stdout)
		require.Contains(t, stderr, want)
		require.Empty(t, fetchedFiles(t, dir))
	}
}

func TestCorpusRefusesWrongInput(t *testing.T) {
	dir := emptyCache(t)
	file := write(t, "x.trace", small)
	for _, c := range []struct {
		args []string
		want string
	}{
		{nil, "missing command: want list, fetch, verify, lint or anonymize"},
		{[]string{"get"}, `unknown command "get" for "vramyard corpus"`},
		{[]string{"list", "oom_chat"}, "1 argument: want"},
		{[]string{"list", "--json", filepath.Join(dir, "none", "x.json")}, "--json: write "},
		{[]string{"fetch", "oom_chats"}, `unknown trace "oom_chats": did you mean "oom_chat"?`},
		{[]string{"verify", "nothing"}, `unknown trace "nothing": want one of `},
		{[]string{"fetch", "--from", file}, "--from: " + file + ": want a folder, or an address"},
		{[]string{"fetch", "--from", dir}, "--from: " + dir + ": no such file or directory"},
		{[]string{"fetch", "--from", "ftp://host"}, "--from: ftp://host: no such file"},
		{[]string{"fetch", "--from", "http://[::1", "oom_chat"}, "--from: parse "},
		{[]string{"fetch", "--from", t.TempDir(), "oom_chat"}, "no such file or directory"},
		{[]string{"fetch", "--from", "../corpus", "--dir", file, "oom_chat"}, "not a directory"},
		{[]string{"lint"}, "0 arguments: want"},
		{[]string{"lint", "-", "-"}, "standard input can be read only once"},
		{[]string{"lint", filepath.Join(dir, "x.trace")}, "no such file or directory"},
		{[]string{"lint", write(t, "page.html", "<!doctype html>")}, "is an HTML page, not a trace"},
	} {
		status, stdout, stderr := command(t, append([]string{"corpus"}, c.args...)...)
		require.Equal(t, exitTrouble, status, stderr)
		require.Empty(t, stdout)
		require.Contains(t, stderr, c.want)
		require.Equal(t, 1, strings.Count(stderr, "\n"), stderr)
	}
}

func TestLintNamesDefects(t *testing.T) {
	const rmm = "Thread,Time,Action,Pointer,Size,Stream\n"
	for _, c := range []struct {
		name, content string
		want          []string // "PLACE: SEVERITY: CHECK: text"
		fails         bool
	}{
		{"good.trace", "a 1 5\nf 1\nmark \"x\"\nmark \"x end\"\n", nil, false},
		{"kept.trace", "# name=x\na 1 5\na 2 7\nf 1\n", []string{":3: note: balance: 1 block of 7 B never freed"}, false},
		{"cut.trace", "a 1 5\nf 1", []string{":2: warning: read: the last line has no line end"}, true},
		{"unknown.trace", "a 1 5\nf 2\n", []string{":2: error: read: id 2 was never allocated"}, true},
		{"twice.csv", "seq,op,id,bytes,stream,time_us,tag\n0,a,0,5,0,1,x\n1,f,0,5,0,2,\n2,f,0,5,0,3,\n",
			[]string{":4: error: read: id 0 is freed already"}, true},
		{"back.trace", "a 1 5 t=9\nf 1 t=8\n", []string{":2: error: read: time goes back from 9 ns to 8 ns"}, true},
		{"times.trace", "a 1 5 t=9\nf 1\n", []string{":2: warning: time: 1 allocations and frees have no time"}, true},
		{"ends.trace", "mark a\nmark \"a end\"\nmark \"a end\"\n",
			[]string{":3: warning: marks: 1 end of a part that is not open"}, true},
		{"begins.trace", "mark a\nmark \"a end\"\nmark a\n", []string{`:3: warning: marks: "a" begins 2 times and ends 1 times`}, true},
		{"life.trace", "a 1 5 life=step\nf 1\n", []string{":1: warning: marks: 1 requests expect a free at a mark"}, true},
		{"phase.trace", "# config={\"conf\":\"max_split_size_mb:20@load..loaded\"}\nmark load\n",
			[]string{`:1: warning: marks: a setting changes at the mark "loaded"`}, true},
		{"good.rmm", rmm + "1,00:00:01:000000,allocate,0x1000,512,0x0\n1,00:00:01:000000,allocate,0x1200,512,0x0\n" +
			"1,00:00:02:000000,free,0x1000,512,0x0\n1,00:00:02:000000,free,0x1200,512,0x0\n", nil, false},
		{"bad.rmm", rmm + "1,00:00:01:000000,allocate,0x1000,512,0x0\n1,00:00:02:000000,allocate,0x1100,512,0x0\n" +
			"1,00:00:01:500000,allocate,0x1000,64,0x0\n1,00:00:03:000000,free,0x5000,0,0x0\n" +
			"1,00:00:03:000000,free,0x1100,9,0x0\n" +
			"1,00:00:03:000000,free,0x1100,512,0x0\n1,00:00:03:000000,free,0x1000,64,0x0\n",
			[]string{
				":4: error: ghost: 1 allocations at the address of a live block",
				":7: error: ghost: 1 frees of a block that is freed",
				":6: error: balance: 1 frees of another size", ":5: error: ghost: 1 frees of unknown blocks",
				":4: error: time: 1 decreasing times", ":3: error: overlap: 1 allocations that overlap a live block",
			}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			path := write(t, c.name, c.content)
			status, stdout, stderr := command(t, "corpus", "lint", path)
			lines := strings.Split(strings.TrimSuffix(stdout, "\n"), "\n")
			if stdout == "" {
				lines = nil
			}
			require.Len(t, lines, len(c.want), stdout)
			for i, want := range c.want {
				require.True(t, strings.HasPrefix(lines[i], path+want), "%s, want %s", lines[i], want)
			}
			if !c.fails {
				require.Equal(t, exitDone, status, stderr)
				return
			}
			require.Equal(t, exitFailed, status)
			require.Equal(t, "vramyard: 1 of 1 trace with findings\n", stderr)
		})
	}
}

// TestLintGoesOnAfterAnUnreadableFile also has the traces of the examples, which are free of
// defects.
func TestLintGoesOnAfterAnUnreadableFile(t *testing.T) {
	bad := write(t, "bad.trace", "a 1 5\nf 2\n")
	status, stdout, stderr := command(t, "corpus", "lint", "nothing.trace", bad)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stdout, "bad.trace:2: error: ")
	require.Equal(t, "vramyard: nothing.trace: no such file or directory; 1 of 2 traces with findings\n", stderr)
	var files []string
	for _, folder := range []string{"oom", "incidents"} {
		some, err := filepath.Glob("../examples/" + folder + "/*.gz")
		require.NoError(t, err)
		require.NotEmpty(t, some)
		files = append(files, some...)
	}
	for line := range strings.Lines(succeed(t, append([]string{"corpus", "lint", "meta_resnet50_b256"}, files...)...)) {
		require.Contains(t, line, ": note: ")
	}
}
