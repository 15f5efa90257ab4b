package pickle_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace/torch/pickle"
)

// steps returns what a pickle says, a line for each step.
func steps(r io.Reader) (string, error) {
	var b strings.Builder
	for s := pickle.NewScanner(r); ; {
		op, err := s.Next()
		if err != nil {
			return b.String(), err
		}
		fmt.Fprint(&b, s.Offset(), " ")
		switch op {
		case pickle.Int:
			fmt.Fprintln(&b, s.Int())
		case pickle.Uint:
			fmt.Fprintln(&b, s.Uint())
		case pickle.Wide:
			fmt.Fprintln(&b, "wide")
		case pickle.Float:
			fmt.Fprintln(&b, s.Float())
		case pickle.Text:
			fmt.Fprintf(&b, "%.20q of %d\n", s.Text(), len(s.Text()))
		case pickle.Get, pickle.Put:
			fmt.Fprintln(&b, "memo", s.Index())
		default:
			fmt.Fprintln(&b, "step")
		}
		if op == pickle.Stop {
			return b.String(), nil
		}
	}
}

// TestNumbers reads numbers at the edges, as Python writes them.
func TestNumbers(t *testing.T) {
	for written, want := range map[string]string{
		"K\xff":                        "255",
		"M\xff\xff":                    "65535",
		"J\xff\xff\xff\x7f":            "2147483647",
		"J\x00\x00\x00\x80":            "-2147483648",
		"\x8a\x00":                     "0",
		"\x8a\x01\xff":                 "-1",
		"\x8a\x02\x00\x80":             "-32768",
		"\x8a\x05\x00\x00\x00\x80\x00": "2147483648",
		"\x8a\x08\xff\xff\xff\xff\xff\xff\xff\x7f":         fmt.Sprint(math.MaxInt64),
		"\x8a\x08\x00\x00\x00\x00\x00\x00\x00\x80":         fmt.Sprint(math.MinInt64),
		"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\xff\x00":     "18446744073709551615",
		"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x80\xff":     fmt.Sprint(math.MinInt64),
		"\x8a\x09\xff\xff\xff\xff\xff\xff\xff\x7f\xff":     "wide",
		"\x8a\x09\x00\x00\x00\x00\x00\x00\x00\x00\x01":     "wide",
		"\x8a\x0a\x05\x00\x00\x00\x00\x00\x00\x00\x00\x00": "5",
		"\x8b\x01\x00\x00\x00\xfe":                         "-2",
		"G\xbf\xf0\x00\x00\x00\x00\x00\x00":                "-1",
	} {
		got, err := steps(strings.NewReader("\x80\x02" + written + "."))
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("2 %s\n%d step\n", want, 2+len(written)), got)
	}
}

// TestReadSizeDoesNotChangeTheResult reads texts around the size of the buffer, in pieces of all
// sizes.
func TestReadSizeDoesNotChangeTheResult(t *testing.T) {
	var b bytes.Buffer
	b.WriteString("\x80\x04")
	for _, n := range []int{0, 1, 255, 16383, 16384, 16385, 200_000} {
		b.WriteString("\x8d")
		for shift := range 8 {
			b.WriteByte(byte(n >> (8 * shift)))
		}
		b.WriteString(strings.Repeat("x", n))
		b.WriteString("j\x01\x02\x03\x04r\x01\x00\x00\x00")
	}
	b.WriteByte('.')
	want, err := steps(bytes.NewReader(b.Bytes()))
	require.NoError(t, err)
	require.Contains(t, want, "of 200000")
	require.Contains(t, want, "memo 67305985")
	for _, r := range []io.Reader{
		iotest.OneByteReader(bytes.NewReader(b.Bytes())), iotest.HalfReader(bytes.NewReader(b.Bytes())),
		iotest.DataErrReader(bytes.NewReader(b.Bytes())),
	} {
		got, err := steps(r)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
}

// TestErrorsOfTheReaderPass reads from what fails.
func TestErrorsOfTheReaderPass(t *testing.T) {
	broken := errors.New("broken")
	for _, begun := range []string{"", "\x80", "\x80\x04", "\x80\x04J", "\x80\x04X\x05\x00\x00\x00a", "\x80\x04]."} {
		_, err := steps(io.MultiReader(strings.NewReader(begun), iotest.ErrReader(broken)))
		require.ErrorIs(t, err, broken, "%q", begun)
	}
}

// TestEveryOtherOpcodeIsRefused tries all bytes.
func TestEveryOtherOpcodeIsRefused(t *testing.T) {
	const read = ".NJKM\x8a\x8bG\x8cX\x8d]})(ldt\x85\x86\x87aesuhjqr\x94\x80\x95\x88\x89"
	named := 0
	for b := range 256 {
		_, err := steps(strings.NewReader("\x80\x04" + string([]byte{byte(b)})))
		if strings.IndexByte(read, byte(b)) >= 0 {
			if err != nil {
				require.NotContains(t, err.Error(), "opcode")
			}
			continue
		}
		require.ErrorContains(t, err, "at byte 2: ")
		require.ErrorContains(t, err, "opcode")
		if !strings.Contains(err.Error(), "is no opcode") {
			named++
		}
	}
	require.Equal(t, 68-len(read), named, "Python 3.8 and later have 68 opcodes")
}
