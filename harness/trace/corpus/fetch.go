package corpus

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/formats"
	"github.com/vramyard/vramyard/harness/trace/workload"
	"github.com/vramyard/vramyard/internal/fileio"
)

// Open reads the trace from the program or from a folder of fetched traces, and compares its hash.
func (e *Entry) Open(dir string, o formats.Options) (*trace.Trace, error) {
	if e.Inside() {
		return workload.OpenRecording(e.Name)
	}
	path := e.Path(dir)
	if !e.Fetched(dir) {
		return nil, fmt.Errorf(`%s: a trace of the corpus that is not fetched: run "vramyard corpus fetch %[1]s", in a clone with --from corpus`, e.Name)
	}
	t, err := formats.Open(path, o)
	if err != nil {
		return nil, err
	}
	if t.Header.Hash != e.Hash {
		return nil, fmt.Errorf(`%s: has the SHA-256 %.12s…, want %.12s…: run "vramyard corpus fetch %s"`, path, t.Header.Hash,
			e.Hash, e.Name)
	}
	t.Header.Name = e.Name
	return t, nil
}

// Intact returns nil if a folder has the whole file of the trace.
func (e *Entry) Intact(dir string) error {
	f, err := os.Open(e.Path(dir))
	if err != nil {
		return err
	}
	defer f.Close() // read only: no error matters
	return e.copy(io.Discard, f)
}

// Fetch copies the trace from an archive, a folder or the address of one, into a folder, which it
// creates. A file appears under its name only if its content has the hash. Fetch leaves an intact
// file as it is and then returns false.
func (e *Entry) Fetch(ctx context.Context, from, dir string) (fetched bool, err error) {
	if e.Intact(dir) == nil {
		return false, nil
	}
	in, name, err := e.open(ctx, from)
	if err != nil {
		return false, err
	}
	defer in.Close() // read only: no error matters
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return false, err
	}
	return true, fileio.Write(e.Path(dir), nil, func(w io.Writer) error {
		if err := e.copy(w, in); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		return nil
	})
}

// open opens the object in an archive. It also returns its path or address.
func (e *Entry) open(ctx context.Context, from string) (in io.ReadCloser, name string, err error) {
	if !isAddress(from) {
		name = filepath.Join(from, e.Object)
		f, err := os.Open(name)
		if err != nil {
			return nil, name, trace.FileError(name, err)
		}
		return f, name, nil
	}
	if name, err = url.JoinPath(from, e.Object); err != nil {
		return nil, from, err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, name, nil)
	if err != nil {
		return nil, name, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, name, err // has the address
	}
	if answer.StatusCode != http.StatusOK {
		_ = answer.Body.Close() // the status is the error
		return nil, name, fmt.Errorf("%s: %s", name, answer.Status)
	}
	return answer.Body, name, nil
}

// copy decompresses the object and fails unless the content has the length and hash of the trace.
// It reads at most one byte more than that.
func (e *Entry) copy(w io.Writer, object io.Reader) error {
	plain, err := fileio.NewReader(object)
	if err != nil {
		return err
	}
	defer plain.Close()
	sum := sha256.New()
	n, err := io.Copy(io.MultiWriter(w, sum), io.LimitReader(plain, int64(e.Bytes)+1))
	switch h := hex.EncodeToString(sum.Sum(nil)); {
	case err != nil:
		return err
	case n > int64(e.Bytes):
		return fmt.Errorf("has more than %d bytes", e.Bytes)
	case h != e.Hash:
		return fmt.Errorf("has the SHA-256 %.12s…: want %.12s…", h, e.Hash)
	}
	return nil
}

var errArchive = errors.New("want a folder, or an address that begins with https:// or http://")

// CheckArchive returns an error if from is neither a folder nor an address.
func CheckArchive(from string) error {
	if isAddress(from) {
		_, err := url.Parse(from)
		return err
	}
	info, err := os.Stat(from)
	switch {
	case err != nil:
		return trace.FileError(from, err)
	case !info.IsDir():
		return fmt.Errorf("%s: %w", from, errArchive)
	}
	return nil
}
