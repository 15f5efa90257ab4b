package workload_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/vramyard/vramyard/harness/trace"
	"github.com/vramyard/vramyard/harness/trace/workload"
)

// readLog reads a log from a text.
func readLog(t *testing.T, text string, most int, span time.Duration) (*workload.ServingLog, error) {
	t.Helper()
	lines, err := trace.NewLines(strings.NewReader(text), "log.csv", nil)
	if err != nil {
		return nil, err
	}
	defer lines.Close()
	return workload.ReadServingLog(lines, most, span)
}

// logs are the same three requests, and one without a response, in each format.
var logs = map[string]string{
	"azure": "TIMESTAMP,ContextTokens,GeneratedTokens\r\n" +
		"2024-02-28 23:59:59.5000000,100,3\r\n2024-02-29 00:00:01.7500001,4,0\r\n" +
		"2024-02-29 00:00:00.7500001,30,2\r\n2024-02-29 00:00:01.5000000,5000,1",
	"azure with zones": "\ufeffTIMESTAMP,ContextTokens,GeneratedTokens\n" +
		"2024-02-28 23:59:59.500000+00:00,100,3\n\n2024-02-29 01:00:00.7500001+01:00,30,2\n" +
		"2024-02-29 00:00:01.50+00:00,5000,1\n2024-02-29 00:00:02+00:00,4,0\n",
	"burstgpt": "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n" +
		"5,ChatGPT,100,3,103,Conversation log\n6.2500001,GPT-4,30,2,32,API log\n6.5,GPT-4,0,0,0,API log\n" +
		"7.0,GPT-4,5000,1,5001,API log\n",
	"burstgpt with sessions": "Timestamp,Session ID,Elapsed time,Model,Request tokens,Response tokens,Total tokens," +
		"Log Type\n" +
		"0,a,1,ChatGPT,100,3,103,Conversation log\n2,,1.5,GPT-4,5000,1,5001,API log\n2,,,GPT-4,7,0,7,API log\n" +
		"1.2500001,,,GPT-4,30,2,32,API log\n",
}

func TestLogsOfAllFormatsAreRead(t *testing.T) {
	for name, text := range logs {
		log, err := readLog(t, text, 0, 0)
		require.NoError(t, err, name)
		require.Equal(t, strings.Fields(name)[0], log.Format)
		require.Equal(t, 1, log.Skipped, name)
		require.Equal(t, []workload.ServingRequest{
			{Arrival: 0, Prompt: 100, Generated: 3},
			{Arrival: 1_250_000_100, Prompt: 30, Generated: 2},
			{Arrival: 2 * time.Second, Prompt: 5000, Generated: 1},
		}, log.Requests, name)
	}
}

func TestAPartOfALogIsTaken(t *testing.T) {
	log, err := readLog(t, logs["burstgpt"], 2, 0)
	require.NoError(t, err)
	require.Len(t, log.Requests, 2)
	log, err = readLog(t, logs["burstgpt"], 0, 1_250_000_100)
	require.NoError(t, err)
	require.Len(t, log.Requests, 2)
	log, err = readLog(t, logs["burstgpt"], 0, 1_250_000_099)
	require.NoError(t, err)
	require.Len(t, log.Requests, 1)
}

func TestWrongLogsAreRefused(t *testing.T) {
	const azure, burst = "TIMESTAMP,ContextTokens,GeneratedTokens\n", "Timestamp,Request tokens,Response tokens\n"
	const ok = "2023-11-16 18:15:46.6805900,374,44\n"
	for _, c := range []struct{ text, want string }{
		{"", `log.csv:1: header "": want the columns TIMESTAMP,ContextTokens,GeneratedTokens or Timestamp,Request tokens,Response tokens`},
		{"TIMESTAMP,ContextTokens\n" + ok, `log.csv:1: header "TIMESTAMP,ContextTokens": want the columns`},
		{azure, "log.csv: no request: all of the 0 rows have no prompt or no response"},
		{azure + "2023-11-16 18:15:46,374,0\n", "log.csv: no request: all of the 1 rows"},
		{azure + ok + "2023-11-16 18:15:47,374\n", "log.csv:3: row of 2 columns: want 3, as in the header"},
		{azure + ok + "16.11.2023,1,1\n", `log.csv:3: TIMESTAMP "16.11.2023": want a time such as 2023-11-16 18:15:46.6805900 or`},
		{azure + ok + "2025-11-16 18:15:46,1,1\n", `log.csv:3: TIMESTAMP "2025-11-16 18:15:46": want a time within 366 days of`},
		{azure + ok + "0001-01-01 00:00:00,1,1\n", "want a time within 366 days of the first request"},
		{azure + ok + "2023-11-16 18:15:47,-1,44\n", `log.csv:3: ContextTokens "-1": want a number of tokens, at most 4294967295`},
		{azure + ok + "2023-11-16 18:15:47,1,4294967296\n", `log.csv:3: GeneratedTokens "4294967296": want a number of tokens`},
		{azure + ok + "2023-11-16 18:15:47,1,1.5\n", `log.csv:3: GeneratedTokens "1.5": want a number of tokens`},
		{burst + "-1,1,1\n", `log.csv:2: Timestamp "-1": want seconds since the start, from 0 to 1000000000`},
		{burst + "NaN,1,1\n", `log.csv:2: Timestamp "NaN": want seconds`},
		{burst + "1e10,1,1\n", `log.csv:2: Timestamp "1e10": want seconds`},
		{burst + "0,1,1\n1e9,1,1\n", `log.csv:3: Timestamp "1e9": want a time within 366 days`},
		{burst + "0,,1\n", `log.csv:2: Request tokens "": want a number of tokens`},
		{burst + "0,1,1\n" + strings.Repeat("0", 1000) + ",1,x\n", `log.csv:3: Response tokens "x": want a number`},
		{burst + "0,1,1\x00\n", "log.csv:2: NUL byte"},
		{"\x1f\x8b\x08", "log.csv: gzip data is truncated"},
	} {
		_, err := readLog(t, c.text, 0, 0)
		require.ErrorContains(t, err, c.want)
		require.NotContains(t, err.Error(), "\n")
		require.Less(t, len(err.Error()), 220)
	}
}

func TestServersAreJudged(t *testing.T) {
	log, err := readLog(t, logs["azure"], 0, 0)
	require.NoError(t, err)
	for _, c := range []struct {
		param, want string
		set         func(*workload.Serving)
	}{
		{"model", `unknown model "llama2-7": did you mean "llama2-7b"?`, func(p *workload.Serving) { p.Model = "llama2-7" }},
		{"kv", `unknown layout "pages": did you mean "paged"?`, func(p *workload.Serving) { p.KV = "pages" }},
		{"kv", `unknown layout "": want one of paged, concat, reserve`, func(p *workload.Serving) { p.KV = "" }},
		{"batch", "want 1 to 65536", func(p *workload.Serving) { p.Batch = 0 }},
		{"batch", "want 1 to 65536", func(p *workload.Serving) { p.Batch = 65537 }},
		{"context", "want 2 to 4096, the most tokens of llama2-7b", func(p *workload.Serving) { p.Context = 1 }},
		{"context", "want 2 to 4096", func(p *workload.Serving) { p.Context = 4097 }},
		{"speed", "want 0.01 to 10000", func(p *workload.Serving) { p.Speed = 0 }},
		{"speed", "want 0.01 to 10000", func(p *workload.Serving) { p.Speed = 1e9 }},
		{"kv-memory", "want at most 512GiB", func(p *workload.Serving) { p.KVMemory = workload.MaxSize + 1 }},
		{"kv-memory", "49MiB: want at least 2GiB, the KV cache of the largest request",
			func(p *workload.Serving) { p.KVMemory = 49 << 20 }},
	} {
		p := workload.DefaultServing()
		c.set(&p)
		_, err := p.Source(log)
		var wrong *workload.ParamError
		require.ErrorAs(t, err, &wrong, "%+v", p)
		require.Equal(t, c.param, wrong.Param)
		require.ErrorContains(t, wrong.Why, c.want)
	}
}

// TestServersMakeTheSameTraceEverywhere fails if the trace of a log changes, or differs on another
// machine.
func TestServersMakeTheSameTraceEverywhere(t *testing.T) {
	log, err := readLog(t, logs["burstgpt"], 0, 0)
	require.NoError(t, err)
	for kv, want := range map[string]string{
		"paged":   "ffc522515d5c24e848076824dcdafbaa8e09d17d11cae371898f2f271a6a8911",
		"concat":  "3b703c070b590614757700ff6694b7329fd9fb645af4bfdd64b8a9257f57376e",
		"reserve": "7d1882fdc229ffe93389a15f3fa1dea5bdfc681687eb949c6a1d5a8c13c45ea7",
	} {
		p := workload.DefaultServing()
		p.Model, p.KV = "llama2-70b", kv
		src, err := p.Source(log)
		require.NoError(t, err)
		for range 2 { // every walk is the same
			got, err := trace.ContentHash(src)
			require.NoError(t, err)
			require.Equal(t, want, got, kv)
		}
		events := 0
		require.NoError(t, src.Batches(func(batch []trace.Event) error {
			events += len(batch)
			return nil
		}))
		require.Equal(t, events, src.Head().Events)
	}
}
