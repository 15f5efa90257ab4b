package whatif_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/study/whatif"
	"github.com/vramyard/vramyard/internal/units"
	"github.com/vramyard/vramyard/strategies"
)

const gib = device.GiB

// point returns a point of PyTorch with some of the settings, or of a strategy that nobody can
// choose.
func point(label string, need, card device.Size, settings ...string) whatif.Point {
	p := whatif.Point{Label: label, Changes: max(len(settings), 1)}
	if strings.HasPrefix(label, "caching") {
		p.Changes, p.Export = len(settings), &setting.Export{Framework: "PyTorch"}
		if len(settings) > 0 {
			p.Export.Environment = []string{"PYTORCH_ALLOC_CONF=" + strings.Join(settings, ",")}
		}
	}
	p.Strategy, _, _ = strings.Cut(label, " ")
	p.Starts, p.DeviceCalls, p.DeviceTime, p.PeakReserved, p.Device = true, 2176, 44_000_000, need, card
	if need != 0 {
		p.MinCapacity, p.CompletesAt = &need, &need
	}
	if card != 0 {
		completed := need != 0 && need <= card
		if p.Carried = &completed; !completed {
			p.OOMs = 1
		}
	}
	return p
}

// ofTensorFlow makes a point one that TensorFlow can be told.
func ofTensorFlow(p whatif.Point) whatif.Point {
	p.Export = &setting.Export{Framework: "TensorFlow", Environment: []string{"TF_ENABLE_GPU_GARBAGE_COLLECTION=false"}}
	return p
}

// notSearched makes the minimum of a point an upper bound.
func notSearched(p whatif.Point) whatif.Point {
	p.MinCapacity = nil
	return p
}

// asRecorded marks a point as that of the recorded settings.
func asRecorded(p whatif.Point) whatif.Point {
	p.Recorded, p.DeviceCalls, p.DeviceTime = true, 104, 9_000_000
	return p
}

// recording returns what a snapshot of PyTorch says of a run.
func recording(t *testing.T, held device.Size, f *whatif.Failure) whatif.Recorded {
	t.Helper()
	s, err := strategies.All().Lookup("caching", nil)
	require.NoError(t, err)
	r := whatif.Recorded{Setup: s, Framework: "PyTorch", Peak: held, Failure: f, Predicted: 100, Allocs: 100, Streams: 1}
	if f != nil && f.DeviceFree != nil {
		f.Reserved, r.Capacity = held, held+*f.DeviceFree
	}
	return r
}

// died is the failure of a program that ended with it.
func died(free device.Size) *whatif.Failure {
	return &whatif.Failure{Fatal: true, Count: 1, Size: 2 * gib, DeviceFree: &free}
}

// grows is the setting that most of the answers are about.
const grows = "expandable_segments:True"

// answerCase is a result and what there is to say of it.
type answerCase struct {
	card, bound device.Size
	rec         whatif.Recorded
	runs        []whatif.Point
	verdict     whatif.Verdict
	want        string
	environment []string
}

// check holds the words to those of the case.
func (c answerCase) check(t *testing.T, name string) {
	t.Helper()
	r := &whatif.Result{Card: c.card, LowerBound: c.bound, Recorded: c.rec, Runs: c.runs, Points: 30}
	a := whatif.AnswerOf(r, false)
	require.Equal(t, c.want, strings.Join(a.Text, " "), name)
	require.Equal(t, c.verdict, a.Verdict, name)
	require.Equal(t, c.environment, a.Environment, name)
}

func TestAnswersToAFailure(t *testing.T) {
	for name, c := range map[string]answerCase{
		"a setting completes it": {
			card: 24 * gib, bound: 17 * gib, rec: recording(t, 23*gib, died(gib)),
			runs: []whatif.Point{
				point("bestfit", 17*gib+gib/2, 24*gib), point("caching "+grows, 18*gib, 24*gib, grows),
				point("caching split", 18*gib-gib/10, 24*gib, "max_split_size_mb:64", "roundup_power2_divisions:8"),
				asRecorded(point("caching", 27*gib, 24*gib)),
			},
			verdict: whatif.Setting, environment: []string{"PYTORCH_ALLOC_CONF=" + grows},
			want: "Yes: PYTORCH_ALLOC_CONF=expandable_segments:True completes this run on the same card (24.00 GiB). It needs " +
				"18.00 GiB; 23.00 GiB were held when memory ran out, 5.00 GiB more. It makes 2,176 device calls, which take " +
				"44.00 ms by the cost model. The recorded settings make 104 (9.00 ms), and fail. With 512.00 MiB for the CUDA " +
				"context and libraries, the smallest listed card large enough is the NVIDIA L4 (22.16 GiB). Of everything " +
				"tried except the baseline, the strategy bestfit needs the least: 17.50 GiB. The live bytes alone are " +
				"17.00 GiB.",
		},
		"only a strategy does": {
			card: 24 * gib, bound: 17 * gib, rec: recording(t, 23*gib, died(gib)),
			runs:    []whatif.Point{point("bestfit", 18*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
			verdict: whatif.Strategy,
			want: "No setting of PyTorch that was tried completes this run on the same card (24.00 GiB). The strategy bestfit " +
				"would: it needs 18.00 GiB. To use it: vramyard.torch.use(\"bestfit\") before the first tensor on the GPU " +
				"(docs/pytorch.md). It makes 2,176 device calls, which take 44.00 ms by the cost model. " +
				"The recorded settings make 104 (9.00 ms), and fail. With 512.00 MiB for the CUDA context and libraries, the " +
				"smallest listed card large enough is the NVIDIA L4 (22.16 GiB).",
		},
		"only another framework's allocator does": {
			card: 24 * gib, bound: 17 * gib, rec: recording(t, 23*gib, died(gib)),
			runs:    []whatif.Point{ofTensorFlow(point("bfc", 18*gib, 24*gib)), asRecorded(point("caching", 27*gib, 24*gib))},
			verdict: whatif.Strategy,
			want: "No setting of PyTorch that was tried completes this run on the same card (24.00 GiB). The strategy bfc " +
				"would: it needs 18.00 GiB. To use it: vramyard.torch.use(\"bfc\") before the first tensor on the GPU " +
				"(docs/pytorch.md). It makes 2,176 device calls, which take 44.00 ms by the cost model. " +
				"The recorded settings make 104 (9.00 ms), and fail. With 512.00 MiB for the CUDA context and libraries, the " +
				"smallest listed card large enough is the NVIDIA L4 (22.16 GiB).",
		},
		"nothing does": {
			card: 24 * gib, bound: 17 * gib, rec: recording(t, 23*gib, died(gib)),
			runs:    []whatif.Point{point("bestfit", 25*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
			verdict: whatif.None,
			want: "None: none of the 30 settings that were tried completes this run on the same card (24.00 GiB). With the " +
				"recorded settings it needs 27.00 GiB. With 512.00 MiB for the CUDA context and libraries, the smallest " +
				"listed card large enough is the GeForce RTX 5090 (31.36 GiB). Nothing to gain from settings: none of PyTorch " +
				"that was tried needs noticeably less. Of everything tried except the baseline, the strategy bestfit " +
				"needs the least: 25.00 GiB. The live bytes alone are 17.00 GiB.",
		},
		"the live bytes are too many": {
			card: 24 * gib, bound: 25 * gib, rec: recording(t, 23*gib, died(gib)),
			runs:    []whatif.Point{point("bestfit", 26*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
			verdict: whatif.TooLittle,
			want: "None: the live bytes alone need 25.00 GiB, and there were 24.00 GiB. With the recorded settings it needs " +
				"27.00 GiB. With 512.00 MiB for the CUDA context and libraries, the smallest listed card large enough is the " +
				"GeForce RTX 5090 (31.36 GiB). Of everything tried except the baseline, the strategy bestfit " +
				"needs the least: 26.00 GiB.",
		},
		"the replay does not fail": {
			card: 24 * gib, bound: 17 * gib, rec: recording(t, 23*gib, died(gib)),
			runs:    []whatif.Point{asRecorded(point("caching", 20*gib, 24*gib))},
			verdict: whatif.Carried,
			want: "The replay does not fail: with the recorded settings this run completes on the same card (24.00 GiB). So " +
				"the cause of the failure is not in the file, and the effect of other settings is unknown. With " +
				"512.00 MiB for the CUDA context and libraries, the smallest listed card large enough is the NVIDIA L4 " +
				"(22.16 GiB). Nothing to gain from settings: none of PyTorch that was tried needs noticeably less.",
		},
	} {
		c.check(t, name)
	}
}

func TestAnswersWithoutAFailure(t *testing.T) {
	for name, c := range map[string]answerCase{
		"another card that is large enough": {
			card: 22692 * device.MiB, bound: 17 * gib, rec: recording(t, 21*gib, nil),
			runs: []whatif.Point{asRecorded(point("caching", 20*gib, 22692*device.MiB)),
				point("caching "+grows, 18*gib, 22692*device.MiB, grows)},
			verdict: whatif.Carried, environment: []string{"PYTORCH_ALLOC_CONF=" + grows},
			want: "No failure is recorded. With the recorded settings the run completes on the NVIDIA L4 (22.16 GiB): it " +
				"needs 20.00 GiB. With 512.00 MiB for the CUDA context and libraries, the smallest listed card large enough " +
				"is the NVIDIA L4 (22.16 GiB). PYTORCH_ALLOC_CONF=expandable_segments:True needs 18.00 GiB: 2.00 GiB less. It " +
				"makes 2,176 device calls, which take 44.00 ms by the cost model. The recorded settings make 104 (9.00 ms).",
		},
		"no card is known": {
			bound: 17 * gib, rec: recording(t, 20*gib, nil),
			runs:    []whatif.Point{asRecorded(point("caching", 20*gib, 0)), point("caching "+grows, 20*gib-gib/10, 0, grows)},
			verdict: whatif.NoCard,
			want: "No failure is recorded. With the recorded settings it needs 20.00 GiB. With 512.00 MiB for the CUDA " +
				"context and libraries, the smallest listed card large enough is the NVIDIA L4 (22.16 GiB). Nothing to gain " +
				"from settings: none of PyTorch that was tried needs noticeably less.",
		},
		"a trace of an unknown allocator": {
			card: 16 * gib, bound: 12 * gib, rec: whatif.Recorded{Streams: 1},
			runs:    []whatif.Point{point("caching", 15*gib, 16*gib), point("bestfit", 12*gib, 16*gib)},
			verdict: whatif.Strategy,
			want: "The strategy bestfit completes this run on a card of 16.00 GiB. It needs 12.00 GiB. To use it: " +
				"vramyard.torch.use(\"bestfit\") before the first tensor on the GPU (docs/pytorch.md). It makes 2,176 device " +
				"calls, which take 44.00 ms by the cost model. With 512.00 MiB for the CUDA context and libraries, the smallest " +
				"listed card large enough is the Tesla T4 (14.75 GiB).",
		},
		"what would need less was not searched": {
			bound: 17 * gib, rec: recording(t, 20*gib, nil),
			runs: []whatif.Point{asRecorded(point("caching", 20*gib, 0)),
				notSearched(point("caching "+grows, 20*gib-gib/10, 0, grows))},
			verdict: whatif.NoCard,
			want: "No failure is recorded. With the recorded settings it needs 20.00 GiB. With 512.00 MiB for the CUDA " +
				"context and libraries, the smallest listed card large enough is the NVIDIA L4 (22.16 GiB). Nothing to gain " +
				"from settings, as far as was searched: none of PyTorch that was tried needs noticeably less.",
		},
		"more than any card has": {
			bound: 3 * device.TiB, rec: recording(t, 20*gib, nil), runs: []whatif.Point{}, verdict: whatif.TooLittle,
			want: "None: the live bytes alone need 3.00 TiB, and there is no card of more than 178.36 GiB. So no setting " +
				"was tried.",
		},
		"it was refused memory and went on": {
			bound: 17 * gib, rec: recording(t, 20*gib, &whatif.Failure{Count: 3, Size: gib}),
			runs:    []whatif.Point{asRecorded(point("caching", 200*gib, 0))},
			verdict: whatif.NoCard,
			want: "The program was refused memory 3 times and went on. With the recorded settings it needs 200.00 GiB. No " +
				"card listed is large enough, with 512.00 MiB for the CUDA context and libraries: the largest is the NVIDIA B200 " +
				"(178.36 GiB). Nothing to gain from settings: none of PyTorch that was tried needs noticeably less.",
		},
		"it died on a card that is not known": {
			bound: 17 * gib, rec: recording(t, 20*gib, &whatif.Failure{Fatal: true, Count: 1, Size: gib}),
			runs:    []whatif.Point{asRecorded(point("caching", 20*gib, 0))},
			verdict: whatif.NoCard,
			want: "The recorded program found no memory for 1.00 GiB. The file lacks the card's capacity: name the card " +
				"with --device. With the recorded settings it needs 20.00 GiB. With 512.00 MiB for the CUDA context and " +
				"libraries, the " +
				"smallest listed card large enough is the NVIDIA L4 (22.16 GiB). Nothing to gain from settings: none of " +
				"PyTorch that was tried needs noticeably less.",
		},
	} {
		c.check(t, name)
	}
}

// TestCertaintyOfAnswers takes one doubt after the other.
func TestCertaintyOfAnswers(t *testing.T) {
	sure := func(change func(*whatif.Recorded)) string {
		rec := recording(t, 20*gib, died(gib))
		rec.Replayed = 20*gib + gib/10
		change(&rec)
		r := &whatif.Result{Card: 21 * gib, LowerBound: 17 * gib, Recorded: rec, Runs: []whatif.Point{
			point("caching grow", 21*gib-gib/10, 21*gib, "expandable_segments:True"),
			asRecorded(point("caching", 22*gib, 21*gib)),
		}}
		return strings.Join(whatif.AnswerOf(r, false).Sure, "\n")
	}
	plain := sure(func(*whatif.Recorded) {})
	require.Contains(t, strings.Join(whatif.AnswerOf(&whatif.Result{Card: gib, LowerBound: gib}, true).Sure, "\n"),
		"Private pools (CUDA graphs) are replayed")
	require.Contains(t, plain, "That is close: it leaves 102.40 MiB free, 0.5 % of the card.")
	require.Contains(t, plain, "places all 100 allocations of this file where they were.")
	require.Contains(t, plain, "With the recorded settings the replay reserves at most 20.10 GiB; the recorded peak is "+
		"20.00 GiB.")
	require.Contains(t, plain, "The capacity is the reserved plus the free memory at the time of the failure: 21.00 GiB.")
	for want, change := range map[string]func(*whatif.Recorded){
		"places 50 of 100 allocations of this file where they were (50.0 %).": func(r *whatif.Recorded) { r.Predicted = 50 },
		"The rest was not compared: enough.": func(r *whatif.Recorded) {
			r.Predicted, r.Stopped = 50, "enough"
		},
		"The file has no addresses": func(r *whatif.Recorded) { r.Allocs = 0 },
		"The file records neither the allocator nor its settings.": func(r *whatif.Recorded) {
			r.Allocs, r.Setup = 0, setting.Setup{}
		},
		"The recording begins with 1,234 live allocations.":     func(r *whatif.Recorded) { r.Opening = 1234 },
		"3 entries of the file are inconsistent":                func(r *whatif.Recorded) { r.Inconsistencies = 3 },
		"Private pools (CUDA graphs) are recorded":              func(r *whatif.Recorded) { r.Pools = 1 },
		"4 streams request memory.":                             func(r *whatif.Recorded) { r.Streams = 4 },
		"Only the rounded size of the refused request is known": func(r *whatif.Recorded) { r.Rounded = true },
	} {
		require.NotContains(t, plain, want)
		require.Contains(t, sure(change), want)
	}
}

// TestAnswersNeverNameTheBaselineAsWinner has a baseline that needs less than everything else.
func TestAnswersNeverNameTheBaselineAsWinner(t *testing.T) {
	baseline := point("direct", 17*gib, 24*gib)
	baseline.Baseline = true
	r := &whatif.Result{
		Card: 24 * gib, LowerBound: 17 * gib, Recorded: recording(t, 23*gib, died(gib)), Points: 30,
		Runs: []whatif.Point{baseline, point("bestfit", 18*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
	}
	text := strings.Join(whatif.AnswerOf(r, false).Text, " ")
	require.Contains(t, text, "The strategy bestfit would")
	require.NotContains(t, text, "direct")

	r.Runs = []whatif.Point{baseline, point("bestfit", 25*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))}
	a := whatif.AnswerOf(r, false)
	text = strings.Join(a.Text, " ")
	require.Equal(t, whatif.None, a.Verdict)
	require.Contains(t, text, "None: of the 30 settings that were tried, only the baseline direct completes this run on ")
	require.Contains(t, text, "the strategy bestfit needs the least: 25.00 GiB")
}

// TestAnswersSayHowToUseAStrategy has a strategy that needs less than every setting.
func TestAnswersSayHowToUseAStrategy(t *testing.T) {
	r := &whatif.Result{
		Card: 24 * gib, LowerBound: 17 * gib, Recorded: recording(t, 23*gib, died(gib)), Points: 30,
		Runs: []whatif.Point{point("async:keep 8MiB", 18*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
	}
	use := func(pools bool) string { return strings.Join(whatif.AnswerOf(r, pools).Text, " ") }
	require.Contains(t, use(false), `would: it needs 18.00 GiB. To use it: vramyard.torch.use("async:keep") `+
		`before the first tensor on the GPU (docs/pytorch.md).`)
	require.Contains(t, use(true), "would: it needs 18.00 GiB. A program with private pools cannot load it "+
		"(docs/pytorch.md).")
	r.Recorded.Framework = "JAX"
	require.Contains(t, use(false), "would: it needs 18.00 GiB. JAX has no way to load it.")
	r.Recorded.Framework = ""
	require.Contains(t, use(false), `It needs 18.00 GiB; 23.00 GiB were held when memory ran out, 5.00 GiB more. To use it: `)
	r.Runs[0] = point("caching "+grows, 18*gib, 24*gib, grows)
	require.NotContains(t, use(false), "To use it")
}

// TestAnswersNameNoSettingThatTheReleaseLacks has settings that need least and came with 2.1.
func TestAnswersNameNoSettingThatTheReleaseLacks(t *testing.T) {
	newer := point("caching "+grows, 18*gib, 24*gib, grows)
	newer.Export.From = "2.1"
	r := &whatif.Result{
		Card: 24 * gib, LowerBound: 17 * gib, Recorded: recording(t, 23*gib, died(gib)), Points: 30,
		Permit: &whatif.Permit{},
		Runs:   []whatif.Point{newer, point("bestfit", 19*gib, 24*gib), asRecorded(point("caching", 27*gib, 24*gib))},
	}
	for version, named := range map[string]bool{"2.0.1": false, "2.1.0": true, "": true} {
		r.Recorded.Version = version
		a := whatif.AnswerOf(r, false)
		texts := append([]string{a.Label}, a.Text...)
		for _, c := range a.Constraints {
			texts = append(texts, c.Text)
		}
		require.Equal(t, named, strings.Contains(strings.Join(texts, " "), grows), "%q: %q", version, texts)
	}
	r.Runs = r.Runs[:1]
	r.Recorded.Version = "2.0.1"
	require.Equal(t, whatif.None, whatif.AnswerOf(r, false).Verdict)
}

// TestAnswersKnowTheContext has a card that excludes the context, as a simulated run has.
func TestAnswersKnowTheContext(t *testing.T) {
	r := &whatif.Result{
		Card: 24 * gib, LowerBound: 17 * gib, Recorded: recording(t, 20*gib, nil), Points: 2,
		Runs: []whatif.Point{asRecorded(point("caching", 23900*device.MiB, 24*gib))},
	}
	text := strings.Join(whatif.AnswerOf(r, false).Text, " ")
	require.Contains(t, text, "With 512.00 MiB for the CUDA context and libraries, the smallest listed card")
	for _, context := range []device.Size{500 * device.MiB, 40 * gib} {
		r.Context = context
		text := strings.Join(whatif.AnswerOf(r, false).Text, " ")
		require.NotContains(t, text, "too tight")
		require.Contains(t, text, "With "+units.Bytes(context)+" for the CUDA context and libraries, the smallest listed")
	}
}

// TestAnswersKeepPrivatePools has a setting that needs less because graphs share their memory.
func TestAnswersKeepPrivatePools(t *testing.T) {
	of := func(strategy string, p whatif.Point) whatif.Point {
		p.Strategy = strategy
		return p
	}
	driver := of("async", point("async", 12*gib, 24*gib, "backend:async"))
	driver.Export = &setting.Export{Framework: "PyTorch", Environment: []string{"PYTORCH_ALLOC_CONF=backend:async"}}
	r := &whatif.Result{
		Card: 24 * gib, LowerBound: 11 * gib, Recorded: recording(t, 20*gib, nil), Points: 3,
		Runs: []whatif.Point{
			driver, of("caching", point("caching grow", 16*gib, 24*gib, "expandable_segments:True")),
			of("caching", asRecorded(point("caching", 20*gib, 24*gib))),
		},
	}
	require.Equal(t, "async", whatif.AnswerOf(r, false).Label)
	require.Equal(t, "caching grow", whatif.AnswerOf(r, true).Label)
}

// TestNoSettingWithoutPrivatePoolsIsNamed has a trace with private pools and no recorded settings,
// on a card on which only strategies without pools complete and on one that is large enough.
func TestNoSettingWithoutPrivatePoolsIsNamed(t *testing.T) {
	const pools = "pool begin 1\na 1 10MiB\na 2 10MiB\nf 1\npool end 1\na 3 10MiB\n"
	for _, header := range []string{"# vramyard-trace 1\n", ofPyTorch} {
		for _, card := range []device.Size{24 * device.MiB, 30 * device.MiB} {
			w, err := whatif.Survey(read(t, header+pools))
			require.NoError(t, err)
			r, err := whatif.Search(t.Context(), w, whatif.RecordedIn(w), quick(t), whatif.Options{Card: card})
			require.NoError(t, err)
			text := strings.Join(append(r.Answer.Text, r.Answer.Environment...), " ")
			require.NotContains(t, text, "cudaMallocAsync")
			if header == ofPyTorch && card == 30*device.MiB {
				require.Contains(t, text, "PyTorch without any setting completes")
			} else {
				require.Contains(t, text, "It makes 1 device call, which takes ")
			}
			require.True(t, *named(t, r, "async:keep").Carried, "it completes, but is not named")
		}
	}
}
