package formats_test

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
)

// read reads a text that must be good.
func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	tr, err := formats.Read(strings.NewReader(text), "dir/t.csv.gz", formats.Options{})
	require.NoError(t, err)
	return tr
}

// lines returns a trace in the native text form without its first line.
func lines(t *testing.T, tr *trace.Trace) string {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, trace.Write(&b, tr))
	_, text, _ := strings.Cut(b.String(), "\n")
	return text
}

func TestFormatIsDetectedByContent(t *testing.T) {
	for text, want := range map[string]string{
		"# only a comment":                     "text",
		"\n\n\ta 1 5\n":                        "text",
		"pool begin 1\n":                       "text",
		"seq,op,id,bytes,stream,time_us,tag\n": "csv",
		"# format=memtrace-1\nseq,op,id,bytes,stream,time_us,tag\n": "csv",
		"\xef\xbb\xbf# x\r\nseq,op,id,bytes,stream,time_us,tag\r\n": "csv",
		"id,lower,upper,size\n": "minimalloc",
		"buffer,size,start,end,alignment,gaps,offset\n1,2,3,4,1,3-4,0\n": "minimalloc",
	} {
		tr := read(t, text)
		require.Equal(t, want, tr.Header.Format, "%q", text)
		require.Len(t, tr.Header.Hash, 64)
		require.Equal(t, "t", tr.Header.Name)
	}
}

func TestUnknownContentIsOneErrorThatListsTheFormats(t *testing.T) {
	known := strings.Join(formats.Names(), ", ")
	for text, begin := range map[string]string{
		"alloc 1 5\n":                 `"alloc 1 5\n"`,
		"\x7fOLF\x02":                 `"\x7fOLF\x02"`,
		"id,lower,upper\n":            `"id,lower,upper\n"`,
		"id,lower,upper,size,color\n": `"id,lower,upper,size,colo"…`,
		"id,lower,lower,upper,size\n": `"id,lower,lower,upper,siz"…`,
		"<body>":                      `"<body>"`,
	} {
		want := "t: begins with " + begin + ", as no known format does: want one of " + known
		if strings.Contains(text, ",") {
			want += `. A CSV has the header line "seq,op,id,bytes,stream,time_us,tag" of csv, or ` +
				`"Thread,Time,Action,Pointer,Size,Stream" of rmm, or "id,lower,upper,size" of minimalloc`
		}
		_, err := formats.Read(strings.NewReader(text), "t", formats.Options{})
		require.EqualError(t, err, want)
	}
}

func TestDialectIsNotDetected(t *testing.T) {
	tr, err := formats.Read(strings.NewReader("a 1 5\nf 2\n"), "t", formats.Options{Dialect: "bfc"})
	require.NoError(t, err)
	require.Len(t, tr.Events, 1)
	_, err = formats.Open("no/such/file", formats.Options{})
	require.EqualError(t, err, "no/such/file: no such file or directory")
	_, err = formats.Open("no/such/file", formats.Options{Dialect: "bfc"})
	require.EqualError(t, err, "no/such/file: no such file or directory")
}

func TestRecognizeReadsTheBeginningOnly(t *testing.T) {
	dir := t.TempDir()
	for name, c := range map[string]struct{ text, want string }{
		"a trace":     {"a 1 1MiB\n", ""},
		"a late flaw": {"a 1 1MiB\nboo\n", ""},
		"no trace":    {"root:x:0\n", `begins with "root:x:0\n", as no known format does`},
		"nothing":     {"", "empty file"},
	} {
		path := filepath.Join(dir, "t")
		require.NoError(t, os.WriteFile(path, []byte(c.text), 0o600))
		err := formats.Recognize(path, formats.Options{})
		if c.want == "" {
			require.NoError(t, err, name)
			continue
		}
		require.ErrorContains(t, err, path+": "+c.want, name)
		require.NoError(t, formats.Recognize(path, formats.Options{Dialect: "bfc"}), name)
	}
	require.ErrorContains(t, formats.Recognize(filepath.Join(dir, "none"), formats.Options{}), "none: no such file")
}
