package formats

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"regexp"
	"strings"
)

// foreign is a kind of file that people mistake for a trace.
type foreign struct {
	what    string // such as "an HTML page"
	instead string // what to pass instead; "" for the names of the formats
	is      func(head []byte) bool
}

// wantSnapshot is the advice for a file of weights.
const wantSnapshot = "want a memory snapshot, as torch.cuda.memory._dump_snapshot writes it, or a log of allocations"

// foreignFiles lists kinds of files that are not traces, so that an error can name the kind. The
// first match counts.
var foreignFiles = []foreign{
	{"a checkpoint of PyTorch (torch.save)", wantSnapshot, isCheckpoint},
	{"a file of weights (safetensors)", wantSnapshot, isSafetensors},
	{"a file of weights (GGUF)", wantSnapshot, begins("GGUF")},
	{"arrays of NumPy", wantSnapshot, func(head []byte) bool {
		return bytes.HasPrefix(head, []byte("\x93NUMPY")) || strings.HasSuffix(firstInZip(head), ".npy")
	}},
	{"an HDF5 file", wantSnapshot, begins("\x89HDF\r\n")},
	{"a zip archive", "want one of the files in it", begins("PK\x03\x04", "PK\x05\x06")},
	{"a tar archive", "want one of the files in it", func(head []byte) bool {
		return len(head) > 262 && string(head[257:262]) == "ustar"
	}},
	{"an HTML page", "vramyard view opens pages that --html wrote", func(head []byte) bool {
		return htmlStart.Match(head)
	}},
	{"a database of SQLite", "", begins("SQLite format 3\x00")},
	{"a program or library (ELF)", "", begins("\x7fELF")},
	{"a PDF file", "", begins("%PDF-")},
	{"a picture", "", begins("\x89PNG\r\n", "\xff\xd8\xff", "GIF8")},
}

// notATrace returns an error that names the kind of a file, if it is in foreignFiles or a result of
// this program.
func notATrace(head []byte) error {
	if m := resultStart.FindSubmatch(head); m != nil {
		return fmt.Errorf("is a result of vramyard %s, not a trace: results are for vramyard diff, plot and view", m[1])
	}
	for _, f := range foreignFiles {
		if !f.is(head) {
			continue
		}
		if f.instead == "" {
			f.instead = "want one of " + strings.Join(Names(), ", ")
		}
		return fmt.Errorf("is %s, not a trace: %s", f.what, f.instead)
	}
	return nil
}

var (
	// resultStart matches the beginning of a result of this program in JSON.
	resultStart = regexp.MustCompile(`^\s*\{\s*"schema":\s*"vramyard-([a-z]+)/\d+"`)
	// htmlStart matches the beginning of a page.
	htmlStart = regexp.MustCompile(`(?i)^\s*(<!doctype html|<html)\b`)
)

// begins returns a function that reports whether a file begins with one of marks.
func begins(marks ...string) func([]byte) bool {
	return func(head []byte) bool {
		for _, m := range marks {
			if bytes.HasPrefix(head, []byte(m)) {
				return true
			}
		}
		return false
	}
}

// torchMagic is the beginning of a file of torch.save before PyTorch 1.6: a magic number as a
// pickle.
const torchMagic = "\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."

// isCheckpoint reports whether a file begins as torch.save writes it: a zip with data.pkl among its
// first entries, the magic number, or a pickle that calls tensor constructors. Snapshots call
// nothing.
func isCheckpoint(head []byte) bool {
	if firstInZip(head) != "" && bytes.Contains(head, []byte("/data.pkl")) || begins(torchMagic)(head) {
		return true
	}
	return len(head) > 0 && head[0] == pickleMark &&
		(bytes.Contains(head, []byte("ctorch._utils\n_rebuild_")) ||
			bytes.Contains(head, []byte("\x8c\x0ctorch._utils\x94\x8c")))
}

// firstInZip returns the name of the first entry of a zip archive, or "" for another file.
func firstInZip(head []byte) string {
	const fixed = 30 // bytes of the header before the name; the length of the name is at 26
	if !begins("PK\x03\x04")(head) || len(head) < fixed {
		return ""
	}
	n := int(binary.LittleEndian.Uint16(head[26:]))
	return string(head[fixed:min(fixed+n, len(head))])
}

// isSafetensors reports whether a file begins with the length of a JSON object and the object.
func isSafetensors(head []byte) bool {
	const length = 8
	if len(head) < length+2 || head[length] != '{' {
		return false
	}
	n := binary.LittleEndian.Uint64(head)
	return n < 1<<32 && (bytes.Contains(head, []byte(`"data_offsets"`)) || bytes.Contains(head, []byte(`"__metadata__"`)))
}
