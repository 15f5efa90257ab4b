package device

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/bits"
	"strconv"
	"strings"
)

// Addr is an address in device memory. It is never dereferenced. Zero is invalid.
type Addr uint64

// Size is a number of bytes of device memory.
type Size uint64

// Stream names a work queue of the device. Zero is the default stream.
type Stream uint64

// Binary multiples of a byte.
const (
	KiB Size = 1 << 10
	MiB Size = 1 << 20
	GiB Size = 1 << 30
	TiB Size = 1 << 40
)

// Add returns the address n bytes above a.
//
// Precondition: the sum does not exceed 64 bits.
func (a Addr) Add(n Size) Addr { return a + Addr(n) }

// Sub returns the distance in bytes from b up to a.
//
// Precondition: b <= a.
func (a Addr) Sub(b Addr) Size { return Size(a - b) }

// IsAligned reports whether a is a multiple of align, a power of two.
func (a Addr) IsAligned(align Size) bool { return a&Addr(align-1) == 0 }

// String returns a in hexadecimal, as drivers print it.
func (a Addr) String() string { return "0x" + strconv.FormatUint(uint64(a), 16) }

// units are the suffixes of Size in its text form, by power of 1024.
var units = [...]string{"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"}

// String formats n exactly if it is a whole number of a binary unit ("2MiB"), otherwise with two
// decimals ("1.37GiB"). [ParseSize] parses the exact form.
func (n Size) String() string {
	k := 0
	for k+1 < len(units) && n>>(10*(k+1)) != 0 {
		k++
	}
	one := Size(1) << (10 * k)
	if n%one == 0 {
		return strconv.FormatUint(uint64(n/one), 10) + units[k]
	}
	return strconv.FormatFloat(float64(n)/float64(one), 'f', 2, 64) + units[k]
}

var errSize = errors.New(`want bytes, as a number or with a unit such as "512KiB", "2MiB", "80GiB"`)

// ParseSize parses a number of bytes: digits, an optional fraction and an optional unit (B, KiB,
// MiB, GiB, TiB, PiB, EiB, or their first letter alone; all are powers of 1024). Negative numbers,
// fractions of a byte and overflow are errors.
func ParseSize(s string) (Size, error) {
	digits := strings.TrimRight(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
	unit := s[len(digits):]
	digits = strings.TrimSpace(digits)
	shift, ok := unitShift(unit)
	if binary, decimal := binaryUnit(unit); decimal {
		return 0, fmt.Errorf("size %q: units are powers of 1024: did you mean %q?", s, digits+binary)
	}
	if !ok {
		return 0, fmt.Errorf("size %q: unknown unit %q: %w", s, unit, errSize)
	}
	whole, frac, hasPoint := strings.Cut(digits, ".")
	n, err := strconv.ParseUint(whole, 10, 64)
	if err != nil || hasPoint && (frac == "" || shift == 0) {
		return 0, fmt.Errorf("size %q: %w", s, errSize)
	}
	if bits.Len64(n)+shift > 64 {
		return 0, fmt.Errorf("size %q: does not fit 64 bits", s)
	}
	part, err := fraction(frac, shift)
	if err != nil {
		return 0, fmt.Errorf("size %q: %w", s, err)
	}
	return Size(n<<shift + part), nil
}

// mostMiB bounds the bare numbers for which an error suggests MiB: no card has 512 GiB.
const mostMiB = 1 << 19

// ParseCapacity parses the capacity of a device like [ParseSize]. It rejects 0, and numbers below 1
// MiB, which lack their unit.
func ParseCapacity(s string) (Size, error) {
	n, err := ParseSize(s)
	if err != nil {
		return 0, err
	}
	bare := strings.TrimSpace(s)
	switch {
	case n == 0:
		return 0, errors.New("want more than 0 bytes")
	case n >= MiB || strings.TrimRight(bare, "0123456789") != "":
		return n, nil
	}
	unit := "GiB"
	if n >= 1024 {
		unit = "MiB"
	}
	if n >= mostMiB {
		return 0, fmt.Errorf("%s bytes are less than 1MiB: want a unit, such as \"24GiB\", or %q for bytes", bare, bare+"B")
	}
	return 0, fmt.Errorf("%s bytes are less than 1MiB: did you mean %q, or %q for bytes?", bare, bare+unit, bare+"B")
}

// binaryUnit returns the power-of-1024 unit for a power-of-1000 unit, such as "GiB" for "GB", and
// whether there is one.
func binaryUnit(unit string) (string, bool) {
	for _, u := range units[1:] {
		if strings.EqualFold(unit, u[:1]+"B") {
			return u, true
		}
	}
	return "", false
}

// unitShift returns the base-2 logarithm of a unit.
func unitShift(unit string) (int, bool) {
	for k, u := range units {
		if strings.EqualFold(unit, u) || strings.EqualFold(unit, u[:1]) {
			return 10 * k, true
		}
	}
	return 0, unit == ""
}

// fraction returns the whole bytes of 0.frac units, truncated.
func fraction(frac string, shift int) (uint64, error) {
	if frac == "" {
		return 0, nil
	}
	if strings.ContainsFunc(frac, func(r rune) bool { return r < '0' || r > '9' }) {
		return 0, errSize
	}
	f, err := strconv.ParseFloat("0."+frac, 64)
	if err != nil {
		return 0, errSize
	}
	return uint64(f * float64(uint64(1)<<shift)), nil
}

// MarshalJSON formats n as a number of bytes.
func (n Size) MarshalJSON() ([]byte, error) { return strconv.AppendUint(nil, uint64(n), 10), nil }

// UnmarshalJSON parses a number of bytes or a string for [ParseSize].
func (n *Size) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		var s string
		if err := json.Unmarshal(b, &s); err != nil {
			return err
		}
		v, err := ParseSize(s)
		if err == nil {
			*n = v
		}
		return err
	}
	v, err := strconv.ParseUint(string(b), 10, 64)
	if err != nil {
		return fmt.Errorf("size %s: %w", b, errSize)
	}
	*n = Size(v)
	return nil
}
