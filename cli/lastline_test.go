package cli

import (
	"bytes"
	"compress/gzip"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnOpenLastLineIsAWarning reads files that end within their last number, or might: they are
// read, with a warning that names the line. With a line end there is none.
func TestAnOpenLastLineIsAWarning(t *testing.T) {
	const doubt = "the last line has no line end: if the file was cut, its last number may have lost digits\n"
	for name, text := range map[string]string{
		"t.trace": "a 1 4096\na 2 819",
		"t.csv":   "seq,op,id,bytes,stream,time_us,tag\n0,a,1,8192,0,1",
		"t.rmm":   "Thread,Time,Action,Pointer,Size,Stream\n1,1,allocate,0x1,8192,0x1",
		"t.mm":    "id,lower,upper,size\n0,0,1,819",
		"t.bfc":   "a 0 4096\na 1 819",
	} {
		if name == "t.csv" {
			text += "," // the tag, which may be empty
		}
		args := []string{"trace", "info"}
		if name == "t.bfc" {
			args = append(args, "--dialect", "bfc")
		}
		path := write(t, name, text)
		status, stdout, stderr := command(t, append(args, path)...)
		require.Equal(t, exitDone, status, stderr)
		require.NotEmpty(t, stdout)
		require.Equal(t, "vramyard: warning: "+path+":2: "+doubt, stderr)
		status, _, stderr = command(t, append(args, write(t, name, text+"\n"))...)
		require.Equal(t, exitDone, status, stderr)
		require.Empty(t, stderr)
		status, _, stderr = command(t, append(args, write(t, name, text+"\r\n"))...)
		require.Equal(t, exitDone, status, stderr)
		require.Empty(t, stderr)
	}
	path := write(t, "t.trace", "a 1 4096\na 2 819")
	for _, args := range [][]string{
		{"replay", "--strategy", "bfc", path}, {"compare", "--strategies", "bfc", path}, {"trace", "convert", path, "-"},
	} {
		status, _, stderr := command(t, args...)
		require.Equal(t, exitDone, status, stderr)
		require.Equal(t, "vramyard: warning: "+path+":2: "+doubt, stderr)
	}

	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	_, err := z.Write([]byte("a 1 4096\na 2 8192\n"))
	require.NoError(t, err)
	require.NoError(t, z.Flush())
	cut := filepath.Join(t.TempDir(), "t.trace.gz")
	require.NoError(t, os.WriteFile(cut, b.Bytes(), 0o600))
	status, _, stderr := command(t, "trace", "info", cut)
	require.Equal(t, exitTrouble, status)
	require.Contains(t, stderr, "gzip data is truncated")
}

func TestAnOpenLastLineOfAddressesIsAWarning(t *testing.T) {
	trace := write(t, "t.trace", "a 1 512\n")
	addresses := write(t, "a.addr", "what,seq,address,bytes\nsegment_alloc,0,2097152,2097152\nalloc,0,2097152,512")
	status, _, stderr := command(t, "verify", "--addresses", addresses, trace)
	require.Equal(t, exitDone, status, stderr)
	require.Contains(t, stderr, "vramyard: warning: "+addresses+":3: the last line has no line end")
}
