package fileio

// [NewReader] reads files that may be compressed.
//
// The compression is detected from the first bytes, not from the name: gzip, xz, zstd, or none.
// Data is decompressed as a stream, so the memory does not depend on the sizes that a file claims,
// and the window of a decoder is bounded.

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
	"github.com/xi2/xz"
)

// maxWindow bounds the window that a stream may request, in bytes: the window of the highest
// ordinary level of zstd, and twice the window of xz -9. Package xi2/xz enforces such a bound;
// ulikunitz/xz v0.5.17 allocates the window that each block declares, up to 4 GiB.
const maxWindow = 128 << 20

// buffer is the number of bytes that [NewReader] decompresses ahead, the limit of [Stream.Peek].
const buffer = 1 << 16

// Stream is the plain content of a file.
type Stream struct {
	plain   *bufio.Reader
	form    string
	release func()
}

// forms are the compression formats, recognised by their first bytes.
var forms = []struct {
	name  string
	magic func(head []byte) bool
	open  func(r io.Reader) (io.Reader, func(), error)
}{
	{"gzip", begins("\x1f\x8b"), openGzip},
	{"xz", begins("\xfd7zXZ\x00"), openXz},
	{"zstd", isZstd, openZstd},
}

// NewReader returns the plain content of r. The caller closes it; r stays the caller's.
//
// Errors of NewReader and Read about compressed data name the compression.
func NewReader(r io.Reader) (*Stream, error) { return NewReaderSize(r, buffer) }

// NewReaderSize is [NewReader] with a look-ahead of the given size, for readers of large blocks.
func NewReaderSize(r io.Reader, ahead int) (*Stream, error) {
	in := bufio.NewReaderSize(r, ahead)
	head, err := in.Peek(6)
	if err != nil && err != io.EOF {
		return nil, err
	}
	for _, f := range forms {
		if !f.magic(head) {
			continue
		}
		plain, release, err := f.open(in)
		if err != nil {
			return nil, broken(f.name, err)
		}
		return &Stream{bufio.NewReaderSize(named{f.name, plain}, ahead), f.name, release}, nil
	}
	return &Stream{in, "", func() {}}, nil
}

// Form returns the name of the compression, "" for none.
func (s *Stream) Form() string { return s.form }

func (s *Stream) Read(b []byte) (int, error) { return s.plain.Read(b) }

// Peek returns the next n bytes without consuming them: at most the look-ahead, fewer at the end of
// the content. They are valid until the next call. The error is nil at the end.
func (s *Stream) Peek(n int) ([]byte, error) {
	b, err := s.plain.Peek(n)
	if err == io.EOF {
		err = nil
	}
	return b, err
}

// Close releases the decompressor.
func (s *Stream) Close() { s.release() }

// begins returns a function that reports whether data begins with a text.
func begins(magic string) func([]byte) bool {
	return func(head []byte) bool { return bytes.HasPrefix(head, []byte(magic)) }
}

// isZstd reports whether data begins with a zstd frame or a skippable frame.
func isZstd(head []byte) bool {
	return len(head) >= 4 && (bytes.Equal(head[:4], []byte{0x28, 0xb5, 0x2f, 0xfd}) ||
		head[0]&0xf0 == 0x50 && bytes.Equal(head[1:4], []byte{0x2a, 0x4d, 0x18}))
}

func openGzip(r io.Reader) (io.Reader, func(), error) {
	z, err := gzip.NewReader(r)
	return z, func() {}, err
}

func openXz(r io.Reader) (io.Reader, func(), error) {
	z, err := xz.NewReader(r, maxWindow)
	return z, func() {}, err
}

func openZstd(r io.Reader) (io.Reader, func(), error) {
	z, err := zstd.NewReader(r, zstd.WithDecoderConcurrency(1), zstd.WithDecoderLowmem(true),
		zstd.WithDecoderMaxWindow(maxWindow))
	if err != nil {
		return nil, nil, err
	}
	return z, z.Close, nil
}

// named is a stream of decompressed data whose errors name the compression.
type named struct {
	name string
	r    io.Reader
}

func (n named) Read(b []byte) (int, error) {
	k, err := n.r.Read(b)
	if err != nil && err != io.EOF {
		err = broken(n.name, err)
	}
	return k, err
}

// broken rewords an error of a decompressor: truncated or corrupt.
func broken(name string, err error) error {
	if errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) || errors.Is(err, xz.ErrBuf) {
		return fmt.Errorf("%s data is truncated", name)
	}
	return fmt.Errorf("%s data is corrupt: %w", name, err)
}
