package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/bench"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// TestMain lets the tests start themselves as a driver, as the program does.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "drive" {
		main()
		return
	}
	os.Exit(m.Run())
}

// quickly is a command line that takes no time to speak of.
func quickly(more ...string) []string {
	return append([]string{"--live", "20", "--pairs", "100", "--rounds", "2"}, more...)
}

// script writes an executable file into a folder.
func script(t *testing.T, folder, name, text string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte("#!/bin/sh\n"+text+"\n"), 0o700))
}

// program returns the operations of W1 with a few blocks.
func program(t *testing.T) *workload.Program {
	t.Helper()
	all, err := bench.Selection{Workloads: "w1", Live: "20", Pairs: 100, Seed: 42}.Resolve()
	require.NoError(t, err)
	return all[0].Program()
}

func TestRace(t *testing.T) {
	self, err := os.Executable()
	require.NoError(t, err)
	folder := t.TempDir()
	script(t, folder, "other", fmt.Sprintf("exec '%s' drive slab:blaze \"$@\"", self))
	require.NoError(t, os.WriteFile(filepath.Join(folder, "notes.txt"), nil, 0o600))
	file := filepath.Join(t.TempDir(), "race.json")
	var b strings.Builder
	require.NoError(t, command(quickly("--workloads", "w1,w3", "--drivers", folder, "--json", file), &b))
	require.Contains(t, b.String(), "│ memutils * │")
	require.Contains(t, b.String(), "│ tlsf *     │")
	require.Contains(t, b.String(), "│ other      │")
	require.Contains(t, b.String(), "\nw3: ")

	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, schema, r.Schema)
	require.Len(t, r.Runs, 2*8)
	for _, run := range r.Runs {
		require.Len(t, run.Rounds, 2)
		require.GreaterOrEqual(t, run.AddressRatio, 1.)
		require.NotEmpty(t, run.About)
	}
}

// TestCounts has a valgrind that counts more in its second run, which has 84 pairs more.
func TestCounts(t *testing.T) {
	bin := t.TempDir()
	t.Setenv("PATH", bin+":"+os.Getenv("PATH"))
	const valgrind = `for a; do case $a in --log-file=*) log=${a#--log-file=};; esac; done
n=0; [ -e "$0.ran" ] && n=84; touch "$0.ran"
printf 'I   refs:      1,%03d,000\nD1  misses:    %d\nLLd misses:  500\n' $n $n >"$log"
exit `
	args := quickly("--strategies", "tlsf*", "--counts", "--json", filepath.Join(bin, "race.json"))
	script(t, bin, "valgrind", valgrind+"1")
	var b strings.Builder
	require.NoError(t, command(args, &b))
	require.Contains(t, b.String(), " instructions ")
	text, err := os.ReadFile(filepath.Join(bin, "race.json"))
	require.NoError(t, err)
	var r report
	require.NoError(t, json.Unmarshal(text, &r))
	require.Equal(t, &counts{Instructions: 1000, Near: 1}, r.Runs[0].Counts)

	script(t, bin, "valgrind", valgrind+"0")
	require.ErrorContains(t, command(args, &b), "counting tlsf on w1 live=20 pairs=100 seed=42: the driver grants")
	script(t, bin, "valgrind", "echo unknown option; exit 1")
	require.ErrorContains(t, command(args, &b), "no such file")
}

// TestWithoutAFill covers a workload whose churn is run once before.
func TestWithoutAFill(t *testing.T) {
	all, err := bench.Selection{Workloads: "w2", Live: "1", Steps: 1, Seed: 42}.Resolve()
	require.NoError(t, err)
	o := operationsOf(all[0].Program(), span)
	require.Empty(t, o.untimed)
	file := filepath.Join(t.TempDir(), "operations")
	require.NoError(t, o.write(file))
	r, err := drive("tlsf", file, "")
	require.NoError(t, err)
	require.Equal(t, all[0].Summary().Hash, r.Hash)
	require.Positive(t, r.NS)
	require.Positive(t, r.Heap)
}

func TestRaceFailsOnInvalidPlacements(t *testing.T) {
	hash := program(t).Summary.Hash
	says := func(ns int) string { return fmt.Sprintf(`echo '{"hash":"%v","ns":%d}'`, hash, ns) }
	for _, c := range []struct{ text, want string }{
		{"echo '{}'", "read operations of hash 0000000000000000"},
		{"echo no", "invalid character"},
		{"echo out of memory >&2; exit 1", "driver: exit status 1: out of memory"},
		{says(5), "no such file"},
		{`[ -n "$2" ] && : >"$2"; ` + says(5), "not one placement for each allocation"},
		{`[ -n "$2" ] && head -c 960 /dev/zero >"$2"; ` + says(5), "operation 1: "},
	} {
		folder := t.TempDir()
		script(t, folder, "cheat", c.text)
		var b strings.Builder
		file := filepath.Join(folder, "race.json")
		err := command(quickly("--strategies", "tlsf", "--drivers", folder, "--json", file), &b)
		require.ErrorContains(t, err, c.want)
		require.ErrorContains(t, err, "cheat on w1 ")
		require.Empty(t, b.String())
		require.NoFileExists(t, file)
	}
}

func TestReferee(t *testing.T) {
	p := program(t)
	o := operationsOf(p, span)
	var good []uint64
	var end uint64
	for _, op := range append(p.Fill, p.Churn...) {
		if !op.IsFree() {
			good = append(good, end)
			end += uint64(device.AlignUp(op.Size(), unit))
		}
	}
	top, err := judge(o, good)
	require.NoError(t, err)
	require.Equal(t, end, uint64(top))
	for _, c := range []struct {
		want  string
		spoil func([]uint64) []uint64
	}{
		{"operation 1: ", func(all []uint64) []uint64 { all[1] -= 256; return all }},
		{"lie over a live block", func(all []uint64) []uint64 { all[1] = all[0]; return all }},
		{"not aligned to 256", func(all []uint64) []uint64 { all[3]++; return all }},
		{"outside of the range", func(all []uint64) []uint64 { all[3] = uint64(span); return all }},
		{errPlacements.Error(), func(all []uint64) []uint64 { return all[:len(all)-1] }},
		{errPlacements.Error(), func(all []uint64) []uint64 { return append(all, end) }},
	} {
		_, err := judge(o, c.spoil(append([]uint64(nil), good...)))
		require.ErrorContains(t, err, c.want)
	}
}

func TestOperationsAreReadAsWritten(t *testing.T) {
	p := program(t)
	o := operationsOf(p, span)
	file := filepath.Join(t.TempDir(), "operations")
	require.NoError(t, o.write(file))
	back, err := readOperations(file)
	require.NoError(t, err)
	require.Equal(t, o, back)
	require.Equal(t, p.Summary.Hash, back.hash())

	b, err := os.ReadFile(file)
	require.NoError(t, err)
	for _, spoil := range []func([]byte) []byte{
		func(b []byte) []byte { return b[:39] },
		func(b []byte) []byte { return b[8:] },
		func(b []byte) []byte { return b[:len(b)-8] },
		func(b []byte) []byte { binary.LittleEndian.PutUint64(b[8:], 19); return b },
	} {
		require.NoError(t, os.WriteFile(file, spoil(append([]byte(nil), b...)), 0o600))
		_, err := readOperations(file)
		require.ErrorContains(t, err, file)
	}
}

func TestWrongUse(t *testing.T) {
	for _, c := range []struct{ args, want string }{
		{"--strategies bcf", `unknown strategy "bcf"`},
		{"--drivers nowhere", "no such file"},
		{"--rounds 0", "--rounds: want at least 1"},
		{"--workloads w9", `unknown workload "w9"`},
		{"--colour", "not defined"},
		{"w1", `unexpected "w1"`},
		{"drive tlsf nowhere", "no such file"},
		{"drive bcf nowhere", `unknown strategy "bcf"`},
		{"--strategies direct*", "direct frees by address only"},
	} {
		require.ErrorContains(t, command(strings.Fields(c.args), new(strings.Builder)), c.want)
	}
	var b strings.Builder
	require.NoError(t, command([]string{"-h"}, &b))
	require.Contains(t, b.String(), "-drivers folder")
}
