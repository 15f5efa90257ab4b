package trace_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/internal/budget"
)

func read(t *testing.T, text string) *trace.Trace {
	t.Helper()
	return readAs(t, "", text)
}

func readAs(t *testing.T, dialect, text string) *trace.Trace {
	t.Helper()
	tr, err := trace.Read(strings.NewReader(text), "t.txt", trace.Options{Dialect: dialect})
	if err != nil {
		t.Fatal(err)
	}
	return tr
}

func gzipped(text string) []byte {
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, _ = w.Write([]byte(text)) // a buffer does not fail
	_ = w.Close()
	return b.Bytes()
}

func zstded(text string) []byte {
	w, _ := zstd.NewWriter(nil) // without a writer there is nothing to fail
	return w.EncodeAll([]byte(text), nil)
}

func TestCompressionIsRecognisedByContent(t *testing.T) {
	const text = "a 0 5\nf 0\n"
	sum := sha256.Sum256([]byte(text))
	for name, data := range map[string][]byte{
		"plain.gz": []byte(text), "gzip.csv": gzipped(text), "zstd.txt": zstded(text), "zstd.gz": zstded(text),
		"parts.gz": append(gzipped("a 0 5\n"), gzipped("f 0\n")...),
	} {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
		tr, err := trace.Open(path, trace.Options{})
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if len(tr.Events) != 2 || tr.Header.Hash != hex.EncodeToString(sum[:]) {
			t.Errorf("%s: %d events, hash %s", name, len(tr.Events), tr.Header.Hash)
		}
	}
}

func TestNameIsTheFilesWithoutEndings(t *testing.T) {
	for path, want := range map[string]string{
		"dir/a.csv.gz": "a", "a.trace.zst": "a", "a.txt": "a", "a.b": "a.b", "a.b.gz": "a.b", ".csv": ".csv", "": "",
	} {
		tr, err := trace.Read(strings.NewReader(""), path, trace.Options{})
		if err != nil || tr.Header.Name != want {
			t.Errorf("%q: name %q, error %v; want %q", path, tr.Header.Name, err, want)
		}
	}
}

func TestHeaderKeepsPairsInFrontOfTheFirstEvent(t *testing.T) {
	tr := read(t, "# vramyard-trace 1\n# name=other\n#a=1\n# plain words\n# b c=2\n#q=\"x\\ty\"\n\na 0 1\n# late=3\n")
	want := []trace.Pair{{Key: "a", Value: "1"}, {Key: "q", Value: "x\ty"}}
	if tr.Header.Name != "other" || !reflect.DeepEqual(tr.Header.Meta, want) {
		t.Errorf("header %+v", tr.Header)
	}
	if v, ok := tr.Header.Get("a"); v != "1" || !ok {
		t.Errorf("Get(a) = %q, %v", v, ok)
	}
	if _, ok := tr.Header.Get("late"); ok {
		t.Error("a pair behind an event was kept")
	}
}

func TestFilesOfWindowsAndWithoutLastNewline(t *testing.T) {
	want := read(t, "a 0 5\nf 0\n").Events
	for name, text := range map[string]string{
		"CRLF": "a 0 5\r\nf 0\r\n", "no newline": "a 0 5\nf 0", "byte order mark": "\ufeffa 0 5\nf 0\n",
		"blanks": "\n\t a   0\t5  \n\n f 0 # gone\n", "CRLF at the end only": "a 0 5\nf 0\r",
	} {
		if got := read(t, text).Events; !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %+v", name, got)
		}
	}
}

// TestErrorsNameFileAndLine holds the text of every message, because people read them.
func TestErrorsNameFileAndLine(t *testing.T) {
	const csv = "seq,op,id,bytes,stream,time_us,tag\n"
	long := strings.Repeat("x", 16<<20+1)
	const number = "want a number from 0 to 18446744073709551615"
	const unit = `want bytes, as a number or with a unit such as "512KiB", "2MiB", "80GiB"`
	for _, c := range []struct{ dialect, text, want string }{
		{"", "a 0 1\na 1 -5\n", `:2: size "-5": ` + unit},
		{"", "a 0 99999999999999999999", `:1: size "99999999999999999999": ` + unit},
		{"", "a 0 16EiB", `:1: size "16EiB": does not fit 64 bits`},
		{"", "a 0 " + strings.Repeat("9", 100), `:1: size "` + strings.Repeat("9", 40) + `"…: want bytes`},
		{"", "a 0 1 algin=5", `:1: unknown key "algin": a knows align, stream, hint, before, tag, site, thread, life, t`},
		{"", "a 0 1 align=x", `:1: align: size "x": unknown unit "x": ` + unit},
		{"", "a 0 1 t=1 t=2", `:1: t is given twice`},
		{"", "a 0 1 2", `:1: unexpected "2" behind "a"`},
		{"", "a 0", `:1: a lacks its size`},
		{"", "a x 1", `:1: id "x": ` + number},
		{"", "a 0 1 hint=up", `:1: hint "up": want low or high`},
		{"", "pool begin 1 options=no_split,use_on_oom", `:1: options "no_split,use_on_oom": want use_on_oom, no_split ` +
			`or both with a comma between them, in this order`},
		{"", "a 0 1 tag=\"x", `:1: text "\"x": not a quoted text`},
		{"", "mark a\"b", `:1: text "a\"b": a text with quotes must be quoted as a whole`},
		{"", "mark two words", `:1: unexpected "words" behind "mark"`},
		{"", "a 0 1\na 0 1", `:2: id 0 is still live`},
		{"", "f 3", `:1: id 3 was never allocated`},
		{"", "a 3 1\nf 3\nf 3", `:3: id 3 is freed already`},
		{"", "a 3 1\nf 3\nuse 3 1", `:3: id 3 is freed already`},
		{"", "a 3 1\ndone 3", `:2: id 3 is not freed`},
		{"", "a 3 1\nf 3\ndone 3\ndone 3", `:4: the free of id 3 is final already`},
		{"", "badfree 3", `:1: id 3 was never allocated`},
		{"", "badfree 0xg", `:1: badfree "0xg": want an id, an address such as 0x7f0000000000, or null`},
		{"", "badfree null +5", `:1: an offset goes with an id only`},
		{"", "a 0 1\nbadfree 0 5", `:2: offset "5": want + and a number of bytes`},
		{"", "trim\nlive 0 5", `:2: allocations live at the start must precede all other events`},
		{"", "a 0 1 t=5\nf 0 t=4", `:2: time goes back from 5 ns to 4 ns`},
		{"", "trim t=9223372036854775808", `:1: t "9223372036854775808": want nanoseconds`},
		{"", "print all", `:1: print "all": want stats, map, totals`},
		{"", "pool open 1",
			`:1: unknown operation "pool open": want one of a, badfree, clear, conf, done, drain, f, fault, frontier, ` +
				`live, mark, pause, poll, pool begin, pool end, pool release, print, refused, resume, trim, use`},
		{"", "# vramyard-trace 2\n", `:1: version 2 of the trace format is newer than this program, which reads version 1`},
		{"", "# vramyard-trace one\n", `:1: version "one" of the trace format: want 1`},
		{"", "trim\na 0 \x001", `:2: NUL byte: this is no text file`},
		{"", "trim\n" + long, `:2: line is longer than 16777216 bytes`},
		{"bfc", "a 0 1 2 3", `:1: unexpected "3" behind "a"`},
		{"bfc", "e", `:1: unknown operation "e": want one of a, c, f, o, p, s, t, u`},
		{"xdl", "a 1 2\na 1 2", `:2: id 1 is still live`},
		{"torch", "b", `:1: b lacks its pool`},
		{"", "seq,op\n", `:1: want the header line seq,op,id,bytes,stream,time_us,tag`},
		{"", "# format=memtrace-1\n0,a,0,1,0,0,x\n", `:2: want the header line seq,op,id,bytes,stream,time_us,tag`},
		{"", "# format=memtrace-1\n", `:2: want the header line seq,op,id,bytes,stream,time_us,tag`},
		{"", "# format=memtrace-2\n" + csv, `:1: format "memtrace-2": want memtrace-1`},
		{"", csv + "1,a,0,1,0,0,x\n", `:2: seq 1: want 0`},
		{"", csv + "0,b,0,1,0,0,x\n", `:2: op "b": want a or f`},
		{"", csv + "0,a,0,0,0,0,x\n", `:2: bytes 0: want at least 1`},
		{"", csv + "0,a,0,-1,0,0,x\n", `:2: bytes "-1": ` + number},
		{"", csv + "0,a,0,1,0,0\n", `:2: want 7 columns: seq,op,id,bytes,stream,time_us,tag`},
		{"", csv + "0,a,0,1,0,0,x,y\n", `:2: want 7 columns: seq,op,id,bytes,stream,time_us,tag`},
		{"", csv + "0,a,0,1,0,5,x\n1,a,1,1,0,4,x\n", `:3: time_us 4: time goes back from 5`},
		{"", csv + "0,a,0,1,0,9223372036854776,x\n", `:2: time_us 9223372036854776: want at most 9223372036854775`},
		{"", csv + "0,a,0,5,0,0,x\n1,f,0,4,0,0,\n", `:3: bytes 4: id 0 was allocated with 5`},
		{"", csv + "0,a,0,5,0,0,x\n1,f,0,5,1,0,\n", `:3: stream 1: id 0 was allocated on 0`},
		{"", csv + "0,a,0,5,0,0,x\n1,f,0,5,0,0,x\n", `:3: tag "x": want none on a free`},
		{"", csv + "0,f,0,5,0,0,\n", `:2: id 0 was never allocated`},
		{"", csv + "0,a,0,5,0,0,x\n1,a,0,5,0,0,x\n", `:3: id 0 is still live`},
		{"", "# mark,2,x\n" + csv + "0,a,0,5,0,0,x\n", `:4: mark at event 2, but there are 1 events`},
		{"", "# mark,2,x\n# mark,1,y\n" + csv, `:2: mark at event 1 follows one at event 2`},
		{"", csv + "0,a,0,5,0,0,x\n# mark,0,x\n", `:3: mark at event 0 stands behind that event`},
		{"", csv + "# mark,x,x\n", `:2: mark "x": ` + number},
		{"", "# mark,x\n" + csv, `:1: mark "x": ` + number},
	} {
		wantError(t, c.dialect, c.text, c.want)
	}
}

func TestErrorsOfSitesAndThreads(t *testing.T) {
	const origins = "seq,op,id,bytes,stream,time_us,tag,site,thread\n"
	for _, c := range []struct{ text, want string }{
		{"a 0 1 site=5", `:1: site "5": want 0x and 1 to 16 hexadecimal digits`},
		{"a 0 1 site=0x", `:1: site "0x": want 0x and 1 to 16 hexadecimal digits`},
		{"a 0 1 site=0x10000000000000000", `:1: site "0x10000000000000000": want 0x and 1 to 16 hexadecimal digits`},
		{"live 0 1 site=0x1 site=0x1", `:1: site is given twice`},
		{"refused 1 thread=4294967296", `:1: thread "4294967296": want a number from 0 to 4294967295`},
		{"a 0 1 life=long", `:1: life "long": want mark, step or run`},
		{origins[:len(origins)-1] + ",life\n0,a,0,1,0,0,x,,\n",
			`:2: want 10 columns: seq,op,id,bytes,stream,time_us,tag,site,thread,life`},
		{origins[:len(origins)-1] + ",life\n0,a,0,1,0,0,x,,,0\n", `:2: life "0": want mark, step or run`},
		{origins[:len(origins)-1] + ",life\n0,a,0,5,0,0,x,,,run\n1,f,0,5,0,0,,,,run\n",
			`:3: life "run": want none on a free`},
		{"a 0 1\nf 0 thread=1", `:2: unknown key "thread": f knows t`},
		{origins + "0,a,0,1,0,0,x\n", `:2: want 9 columns: seq,op,id,bytes,stream,time_us,tag,site,thread`},
		{origins + "0,a,0,1,0,0,x,,,\n", `:2: want 9 columns: seq,op,id,bytes,stream,time_us,tag,site,thread`},
		{origins + "0,a,0,1,0,0,x,7,\n", `:2: site "7": want 0x and 1 to 16 hexadecimal digits`},
		{origins + "0,a,0,1,0,0,x,,-1\n", `:2: thread "-1": want a number from 0 to 4294967295`},
		{origins + "0,a,0,5,0,0,x,0x1,\n1,f,0,5,0,0,,,2\n", `:3: site "", thread "2": want none on a free`},
	} {
		wantError(t, "", c.text, c.want)
	}
}

// wantError reads a text that is wrong.
func wantError(t *testing.T, dialect, text, want string) {
	t.Helper()
	_, err := trace.Read(strings.NewReader(text), "dir/t.txt", trace.Options{Dialect: dialect})
	if err == nil || err.Error() != "dir/t.txt"+want {
		t.Errorf("%.60q: %v\nwant dir/t.txt%s", text, err, want)
		return
	}
	var where *trace.Error
	if !errors.As(err, &where) || where.File != "dir/t.txt" || where.Line == 0 {
		t.Errorf("%.60q: error is %#v", text, err)
	}
}

func TestBrokenCompressionIsOneError(t *testing.T) {
	text := strings.Repeat("trim\n", 200_000)
	flip := func(b []byte, at int) []byte { b[at] ^= 0xff; return b }
	cut := func(b []byte) []byte { return b[:len(b)-6] }
	for name, c := range map[string]struct {
		data []byte
		want string
	}{
		"gzip cut":       {cut(gzipped(text)), "gzip data is truncated"},
		"gzip header":    {[]byte{0x1f, 0x8b, 8}, "t.gz: gzip data is truncated"},
		"gzip sum":       {flip(gzipped(text), len(gzipped(text))-6), "gzip data is corrupt: gzip: invalid checksum"},
		"gzip no header": {[]byte{0x1f, 0x8b, 9, 0, 0, 0, 0, 0, 0, 0, 0}, "t.gz: gzip data is corrupt: gzip: invalid header"},
		"gzip tail":      {append(gzipped(text), "tail of something else"...), "gzip data is corrupt: gzip: invalid header"},
		"zstd cut":       {cut(zstded(text)), "zstd data is truncated"},
		"zstd header":    {[]byte{0x28, 0xb5, 0x2f, 0xfd}, "zstd data is truncated"},
	} {
		_, err := trace.Read(bytes.NewReader(c.data), "t.gz", trace.Options{})
		if err == nil || !strings.HasSuffix(err.Error(), c.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want …%s", name, err, c.want)
		}
	}
	// A broken last line is the fault of the stream, not of the line.
	_, err := trace.Read(&failing{"a 0 5\na 1"}, "t", trace.Options{})
	if want := "t:2: the disk is gone"; err == nil || err.Error() != want {
		t.Errorf("failing reader: %v, want %s", err, want)
	}
}

// failing returns its text and then fails.
type failing struct{ text string }

func (f *failing) Read(b []byte) (int, error) {
	n := copy(b, f.text)
	if f.text = f.text[n:]; n == 0 {
		return 0, errors.New("the disk is gone")
	}
	return n, nil
}

func TestFilesThatCannotBeOpened(t *testing.T) {
	_, err := trace.Open("no/such/file", trace.Options{})
	if want := "no/such/file: no such file or directory"; err == nil || err.Error() != want ||
		!errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v, want %s", err, want)
	}
	dir := t.TempDir()
	if _, err := trace.Open(dir, trace.Options{}); err == nil || err.Error() != dir+": is a directory" {
		t.Errorf("%v", err)
	}
	_, err = trace.Open("t.txt", trace.Options{Dialect: "tcmalloc"})
	if want := `unknown dialect "tcmalloc": want one of bfc, torch, xdl, or none for text and CSV`; err == nil ||
		err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestOpenReadsStandardInput(t *testing.T) {
	path := filepath.Join(t.TempDir(), "in")
	if err := os.WriteFile(path, []byte("a 0 5\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	defer func(old *os.File) { os.Stdin = old }(os.Stdin)
	os.Stdin = f
	tr, err := trace.Open("-", trace.Options{})
	if err != nil || len(tr.Events) != 1 || tr.Header.Name != "stdin" {
		t.Errorf("%+v, %v", tr, err)
	}
}

func TestLongestLineIsAccepted(t *testing.T) {
	for _, end := range []string{"", "\n", "\r\n"} {
		line := "mark " + strings.Repeat("x", 16<<20-5)
		if tr := read(t, "trim\n"+line+end); len(tr.Events) != 2 {
			t.Errorf("end %q: %d events", end, len(tr.Events))
		}
	}
}

func TestBombsAreDefused(t *testing.T) {
	for name, c := range map[string]struct {
		piece string
		want  string
	}{
		"one line": {strings.Repeat("x", 1<<20), "t:1: line is longer than 16777216 bytes"},
		"events":   {strings.Repeat("trim\n", 1<<17), "t:119345: takes more than 16MiB of memory"},
	} {
		var b bytes.Buffer
		w := gzip.NewWriter(&b)
		for range 64 {
			_, _ = w.Write([]byte(c.piece)) // a buffer does not fail
		}
		_ = w.Close()
		_, err := trace.Read(&b, "t", trace.Options{Memory: budget.New(16 << 20)})
		if err == nil || err.Error() != c.want {
			t.Errorf("%s: %v, want %s", name, err, c.want)
		}
	}
	var text strings.Builder
	for i := range 300 {
		fmt.Fprintf(&text, "mark %d%s\n", i, strings.Repeat("x", 1<<16-20))
	}
	_, err := trace.Read(strings.NewReader(text.String()), "t", trace.Options{Memory: budget.New(16 << 20)})
	if want := "t:256: takes more than 16MiB of memory"; err == nil || err.Error() != want {
		t.Errorf("text: %v, want %s", err, want)
	}
}

func TestIdsMayBeAnyNumbers(t *testing.T) {
	tr := read(t, "a 18446744073709551615 1\na 5 1\na 1000000 1\na 17 1\na 33 1\na 0 1\nf 18446744073709551615\n"+
		"a 18446744073709551615 2\nf 17\nf 1000000\nf 0")
	var slots []uint32
	for _, e := range tr.Events {
		slots = append(slots, e.Slot)
	}
	if want := []uint32{0, 1, 2, 3, 4, 5, 0, 0, 3, 2, 5}; !reflect.DeepEqual(slots, want) || tr.Slots != 6 {
		t.Errorf("slots %v of %d, want %v of 6", slots, tr.Slots, want)
	}
}

// FuzzRead looks for panics, for errors that are no single line, and for traces that do
// not survive being written.
func FuzzRead(f *testing.F) {
	for _, seed := range []string{
		"# vramyard-trace 1\n# k=v\nlive 1 2KiB\na 0 5 align=512 stream=1 hint=low before=3 tag=\"x y\" t=5\nuse 0 2\nf " +
			"0\ndone 0\n",
		"mark a\ntrim\nfrontier 3\ndrain 1\npool begin 1\npool end 1\npool release 1\nrefused 5\nfault 2\nclear\n" +
			"print map\nconf a:1\nconf \"\"\npause x\npause\nresume\n",
		"live 1 1 site=0xffffffffffffffff thread=4294967295 life=run\na 2 1 site=0x0\nrefused 5 thread=1 site=0x1 " +
			"life=mark\n",
		"seq,op,id,bytes,stream,time_us,tag,site,thread\n0,a,0,5,0,1,x:y,0x5,7\n1,a,1,5,0,1,,,\n2,f,0,5,0,2,,,\n",
		"a 1 1\nbadfree 1 +5\nbadfree 0x7f00\nbadfree null\n",
		"# format=memtrace-1\n# mark,0,x\nseq,op,id,bytes,stream,time_us,tag\n0,a,0,5,0,1,x:y\n1,f,0,5,0,2,\n",
		"a 0 5 64\nu 1 5\nt 2 5 1\nf 0\nf 9\ns 5\nc\np\no\n", "a 1 5 2\nr 1 3\nd 3\ne\nb 1\nn 1\nx 1\nt\n",
	} {
		f.Add([]byte(seed))
	}
	f.Add(gzipped("a 0 5\n"))
	f.Add(zstded("a 0 5\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		for _, dialect := range append(trace.Dialects(), "") {
			tr, err := trace.Read(bytes.NewReader(data), "t", trace.Options{Dialect: dialect, Memory: budget.New(8 << 20)})
			if err != nil {
				if strings.ContainsAny(err.Error(), "\n\r\x00") {
					t.Errorf("error is no line: %q", err)
				}
				continue
			}
			tr.Info()
			sameAfterWriting(t, tr)
		}
	})
}

// TestPlacesOfChangesAreLines has an event of each kind of place.
func TestPlacesOfChangesAreLines(t *testing.T) {
	head := read(t, "# a comment\nconf a:1\nmark b\n\nconf c:2\n").Head()
	for event, want := range []string{"t.txt:2", "event 1", "t.txt:5", "event 3"} {
		if got := head.Place(event); got != want {
			t.Errorf("event %d is at %s, not %s", event, got, want)
		}
	}
}
