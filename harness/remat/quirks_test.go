package remat

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/device"
)

// playedRun is a run that has ended without a budget. The test then evicts and restores storages.
type playedRun struct {
	*runner
	t     *testing.T
	names map[string]Tensor
}

// example is a small schedule: for each operator its name, the bytes of its outputs, which are
// called name and name2, and its inputs. An operator without inputs is a constant.
type example []struct {
	name  string
	sizes []device.Size
	args  []string
}

// play runs an example.
func (e example) play(t *testing.T, m Memory, c Config) *playedRun {
	t.Helper()
	var b Builder
	st := &playedRun{t: t, names: map[string]Tensor{}}
	for _, op := range e {
		call := Call{Name: op.name, Cost: 1, Fixed: len(op.args) == 0}
		for _, a := range op.args {
			call.Args = append(call.Args, st.names[a])
		}
		for _, size := range op.sizes {
			call.Outputs = append(call.Outputs, Output{Size: size, Alias: NoAlias})
		}
		first, err := b.Call(call)
		require.NoError(t, err)
		st.names[op.name] = first
		if len(op.sizes) > 1 {
			st.names[op.name+"2"] = first + 1
		}
	}
	c.Liveness = "none"
	r, err := newRunner(b.Schedule(), m, c)
	require.NoError(t, err)
	require.Equal(t, OK, r.steps())
	st.runner = r
	return st
}

func (st *playedRun) storage(name string) int32 { return st.s.Tensors[st.names[name]].Storage }

// evict evicts storages as if memory were short.
func (st *playedRun) evict(names ...string) {
	for _, n := range names {
		st.runner.evict(st.storage(n), Pressure)
	}
}

// rerun recomputes a tensor.
func (st *playedRun) rerun(name string) {
	require.Equal(st.t, OK, st.materialize(st.names[name], true))
}

// lockAll locks storages, so that they are no candidates.
func (st *playedRun) lockAll(names ...string) {
	for _, n := range names {
		st.lock(st.storage(n))
	}
}

// victim returns the name of the storage that the heuristic would evict.
func (st *playedRun) victim() string {
	s := st.chooseVictim()
	for name, t := range st.names {
		if st.s.Tensors[t].Storage == s {
			return name
		}
	}
	return ""
}

// Sizes in these examples are so small that MegEngine's clock hardly advances. So its score is the
// cost divided by the bytes, and the cost of an operator is the bytes that it reads and writes.

func TestMegEngineIgnoresConsumers(t *testing.T) {
	for quirks, want := range map[Quirks]string{0: "b", QuirkProducer: "a"} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"a", []device.Size{10}, []string{"k"}},      // 11 / 10
			{"b", []device.Size{10}, []string{"k", "k"}}, // 12 / 10
			{"x", []device.Size{100}, []string{"a"}},     // 110, added to the cost of a
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		st.evict("x")
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineLeavesTheOwnCostOut(t *testing.T) {
	for quirks, want := range map[Quirks]string{0: "b", QuirkNoOwn: "a"} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"m", []device.Size{1000}, nil},
			{"a", []device.Size{10}, []string{"m"}}, // 1010 / 10, or nothing / 10
			{"b", []device.Size{9}, []string{"k"}},  // 10 / 9, or nothing / 9
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineCountsAComponentForEachNeighborInIt(t *testing.T) {
	for quirks, want := range map[Quirks]string{0: "a", QuirkTwice: "b"} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"x", []device.Size{10}, []string{"k"}},      // 11
			{"y", []device.Size{10}, []string{"x"}},      // 20, one component with x
			{"z", []device.Size{35}, []string{"k"}},      // 36
			{"a", []device.Size{10}, []string{"x", "y"}}, // 30 + 31, or 30 + 62
			{"b", []device.Size{10}, []string{"z"}},      // 45 + 36
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		st.evict("x", "y", "z")
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineSplitsAComponentWhoseRootIsRestored(t *testing.T) {
	for quirks, want := range map[Quirks]string{
		0:                        "v", // u costs 110 and the 110 of s
		QuirkReset:               "u", // s seems to cost the same as t
		QuirkReset | QuirkClamp:  "v", // but never less than its own cost
		QuirkClamp:               "v", // which changes nothing where sums are right
		QuirkReset | QuirkVector: "u",
	} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"m", []device.Size{160}, nil},
			{"i", []device.Size{10}, []string{"k"}},
			{"s", []device.Size{100}, []string{"i"}},
			{"t", []device.Size{2}, []string{"i"}}, // 12
			{"u", []device.Size{10}, []string{"s"}},
			{"v", []device.Size{10}, []string{"m"}}, // 170
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		st.evict("i", "s", "t") // i hangs below s, s below t
		st.rerun("t")
		st.lockAll("i", "t")
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineRemovesResidentTensors(t *testing.T) {
	for quirks, want := range map[Quirks]string{
		QuirkReset:                 "v", // s is in one component with w, 164
		QuirkReset | QuirkResident: "u", // t takes itself out of it, and s along
		QuirkResident:              "v", // what is there is alone, if mended
	} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"m", []device.Size{190}, nil},
			{"i", []device.Size{10}, []string{"k"}},
			{"s", []device.Size{100}, []string{"i"}}, // 110
			{"t", []device.Size{2, 2}, []string{"i"}},
			{"w", []device.Size{50}, []string{"s"}}, // 150
			{"u", []device.Size{10}, []string{"s"}}, // 110 and the cost of s
			{"v", []device.Size{10}, []string{"m"}}, // 200
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		st.evict("i", "s", "t")
		st.rerun("t")
		st.evict("w", "t2")
		st.rerun("t2")
		st.lockAll("i", "t", "t2")
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineDoesNotCountRecomputations(t *testing.T) {
	for quirks, want := range map[Quirks]string{0: "b", QuirkUncounted: "a"} {
		st := example{
			{"m", []device.Size{19990}, nil},
			{"n", []device.Size{19991}, nil},
			{"a", []device.Size{10}, []string{"m"}}, // 20000, times 1.0001 when it was made again
			{"b", []device.Size{10}, []string{"n"}}, // 20001
			{"c", []device.Size{10}, []string{"a", "b"}},
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "mge", Quirks: quirks})
		st.evict("a")
		st.rerun("a")
		st.evict("c") // now a and b are of the same age, and have the same neighbour
		st.rerun("c")
		st.lockAll("c")
		require.Equal(t, want, st.victim(), quirks)
	}
}

func TestMegEngineReplacesRemovedCandidatesByTheLast(t *testing.T) {
	for quirks, want := range map[Quirks][]string{0: {"d", "c", "a"}, QuirkVector: {"a", "c", "d"}} {
		st := example{
			{"k", []device.Size{1}, nil},
			{"a", []device.Size{10}, []string{"k"}},
			{"b", []device.Size{10}, []string{"k"}},
			{"c", []device.Size{10}, []string{"k"}},
			{"d", []device.Size{10}, []string{"k"}},
		}.play(t, &Counter{Budget: Unlimited}, Config{Heuristic: "size", Quirks: quirks})
		st.evict("b") // in a vector, d takes its place
		got := []string{}
		for range want {
			v := st.victim()
			st.evict(v)
			got = append(got, v)
		}
		require.Equal(t, want, got, "the last, or the first of equals: %v", quirks)
	}
}

// beside is a memory that says by storage what is free beside it.
type beside struct {
	Counter
	merge, touch map[Owner][2]device.Size
	round        device.Size
}

func (m *beside) Alloc(size device.Size, owner Owner) (alloc.Block, bool) {
	if m.round > 0 {
		size = device.AlignUp(size, m.round)
	}
	b, ok := m.Counter.Alloc(size, owner)
	b.Addr = device.Addr(owner)
	return b, ok
}

func (m *beside) FreeNeighbours(b alloc.Block) (below, above device.Size) {
	free := m.merge[Owner(b.Addr)]
	return free[0], free[1]
}

func (m *beside) AdjacentFree(b alloc.Block) (below, above device.Size) {
	free := m.touch[Owner(b.Addr)]
	return free[0], free[1]
}

func TestMegEngineMissesFreeMemoryAboveRoundedBlocks(t *testing.T) {
	pair := example{
		{"k", []device.Size{1}, nil},
		{"a", []device.Size{9}, []string{"k"}},      // 10 / 9, or 10 / 39 with what is free above
		{"b", []device.Size{8}, []string{"k", "k"}}, // 10 / 20 with what is free above
	}
	for quirks, want := range map[Quirks]string{0: "a", QuirkUnaligned: "b"} {
		m := &beside{Counter: Counter{Budget: Unlimited}, round: 8,
			merge: map[Owner][2]device.Size{ownerOf(1): {0, 30}, ownerOf(2): {0, 12}}}
		st := pair.play(t, m, Config{Heuristic: "mge", Quirks: quirks})
		require.Equal(t, want, st.victim(), "the block of b is as large as b, that of a is not: %v", quirks)
	}
}

func TestMegEngineCreditsMemoryThatNeverMerges(t *testing.T) {
	for quirks, want := range map[Quirks]string{0: "b", QuirkHeads: "a"} {
		m := &beside{Counter: Counter{Budget: Unlimited}, touch: map[Owner][2]device.Size{ownerOf(1): {30, 0}}}
		st := example{
			{"k", []device.Size{1}, nil},
			{"a", []device.Size{10}, []string{"k", "k"}}, // 12 / 10, or 12 / 40
			{"b", []device.Size{10}, []string{"k"}},      // 11 / 10
		}.play(t, m, Config{Heuristic: "mge", Quirks: quirks})
		require.Equal(t, want, st.victim(), quirks)
		require.Equal(t, "b", example{
			{"k", []device.Size{1}, nil},
			{"a", []device.Size{10}, []string{"k", "k"}},
			{"b", []device.Size{10}, []string{"k"}},
		}.play(t, m, Config{Heuristic: "mge-nofrag", Quirks: quirks}).victim())
	}
}

func TestCreditIsCappedAtTheRequest(t *testing.T) {
	for h, want := range map[string]string{"eq": "b", "dte": "a", "dte-cap": "b"} {
		m := &beside{Counter: Counter{Budget: Unlimited}, merge: map[Owner][2]device.Size{ownerOf(2): {20, 20}}}
		st := example{
			{"k", []device.Size{1}, nil},
			{"b", []device.Size{20}, []string{"k"}}, // 1 / 20
			{"a", []device.Size{10}, []string{"k"}}, // 1 / 10, or 1 / 50, of which the request can use 20; and younger
		}.play(t, m, Config{Heuristic: h})
		st.requested = 20
		st.clock += 100 // so that ages are alike
		require.Equal(t, want, st.victim(), h)
	}
}

func TestBeladyKnowsTheNextUse(t *testing.T) {
	for _, h := range []string{"belady", "mge-static"} {
		var b Builder
		call := func(args ...Tensor) Tensor {
			out, err := b.Call(Call{Cost: 1, Args: args, Outputs: []Output{{Size: 10, Alias: NoAlias}}})
			require.NoError(t, err)
			return out
		}
		early, late := call(), call()
		call(call(call(call(call(early)))))
		call(late)
		r, err := newRunner(b.Schedule(), &Counter{Budget: Unlimited}, Config{Heuristic: h, Liveness: "none"})
		require.NoError(t, err)
		for i := range 2 {
			r.step = int32(i)
			require.Equal(t, OK, r.compute(int32(i)))
		}
		require.Equal(t, int32(late), r.chooseVictim(), h)
		r.lock(1)
		require.Equal(t, int32(early), r.chooseVictim(), h)
	}
}

func TestQuirksHaveNames(t *testing.T) {
	for q := Quirks(1); q < endQuirks; q <<= 1 {
		got, err := ParseQuirks(q.String())
		require.NoError(t, err)
		require.Equal(t, q, got)
	}
	all, err := ParseQuirks("all")
	require.NoError(t, err)
	require.Equal(t, AllQuirks, all)
	require.Equal(t, "q1,q2,q3,q4,q5,q6,q7,q8,q9,vector,uncounted", all.String())
	none, err := ParseQuirks("")
	require.NoError(t, err)
	require.Zero(t, none)
	_, err = ParseQuirks("q1,q0")
	require.ErrorContains(t, err, `quirk "q0": want q1, q2, `)
}
