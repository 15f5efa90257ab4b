package main

import (
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestInstructionsAreDecoded(t *testing.T) {
	regs := unix.PtraceRegs{Rax: 0x1000, Rcx: 0x20, Rsp: 0x8000, R15: 0x5000, Fs_base: 0x9000}
	type access struct {
		at    uint64
		bytes int
	}
	for name, c := range map[string]struct {
		code []byte
		want []access
	}{
		"mov rdx, [rax+rcx*8+16]":  {[]byte{0x48, 0x8b, 0x54, 0xc8, 0x10}, []access{{0x1110, 8}}},
		"mov [r15], eax":           {[]byte{0x41, 0x89, 0x07}, []access{{0x5000, 4}}},
		"mov rcx, fs:[-8]":         {[]byte{0x64, 0x48, 0x8b, 0x0c, 0x25, 0xf8, 0xff, 0xff, 0xff}, []access{{0x8ff8, 8}}},
		"mov rax, [rip+256]":       {[]byte{0x48, 0x8b, 0x05, 0, 1, 0, 0}, []access{{0x100 + 7 + 256, 8}}},
		"lea rax, [rax+8]":         {[]byte{0x48, 0x8d, 0x40, 0x08}, nil},
		"nop [rax]":                {[]byte{0x0f, 0x1f, 0x00}, nil},
		"push rax":                 {[]byte{0x50}, []access{{0x7ff8, 8}}},
		"ret":                      {[]byte{0xc3}, []access{{0x8000, 8}}},
		"movups [rsp+16], xmm15":   {[]byte{0x44, 0x0f, 0x11, 0x7c, 0x24, 0x10}, []access{{0x8010, 16}}},
		"lock cmpxchg [rax], ecx":  {[]byte{0xf0, 0x0f, 0xb1, 0x08}, []access{{0x1000, 4}}},
		"add rax, rcx":             {[]byte{0x48, 0x01, 0xc8}, nil},
		"movzx ecx, byte [rax+31]": {[]byte{0x0f, 0xb6, 0x48, 0x1f}, []access{{0x101f, 1}}},
	} {
		d := decodeCode(append(c.code, make([]byte, 16-len(c.code))...), 0x100)
		require.False(t, d.unknown, name)
		require.False(t, d.isMarker, name)
		var got []access
		for _, w := range d.touches {
			got = append(got, access{w.address(&regs), w.bytes})
		}
		require.Equal(t, c.want, got, name)
	}
	require.True(t, decodeCode([]byte{0xcc}, 0).isMarker)
	require.True(t, decodeCode([]byte{0x06}, 0).unknown)
}

func TestPairsAreSteppedThrough(t *testing.T) {
	if testing.Short() {
		t.Skip("steps through a hundred thousand instructions")
	}
	seen, err := stepThrough("tlsf", 1000)
	require.NoError(t, err)
	require.Equal(t, "tlsf", seen.Strategy)
	require.Positive(t, seen.Metadata)
	require.Zero(t, seen.Unknown)
	require.Greater(t, seen.Instructions, 100.)
	require.Less(t, seen.Instructions, 5000., "nothing but the pairs")
	require.Greater(t, seen.Lines, seen.Far)
	require.Positive(t, seen.Far)
	sum := 0.
	for _, p := range seen.Places {
		sum += p.Far
	}
	require.InDelta(t, seen.Far, sum, 1e-6)
	_, err = stepThrough("nothing", 1000)
	require.Error(t, err)
}
