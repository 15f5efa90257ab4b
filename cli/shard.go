package cli

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/vramyard/vramyard/harness/study/sweep"
)

// arrayVariables are the variables with which an engine numbers the tasks of an array. Each task
// has index and all other variables that are named.
type arrayVariables struct {
	index, count         string // count is "" if the engine does not pass it
	first, last, stepped string // "" where the first index is 0 and the step 1
}

// arrays are the known engines, in the order in which they are looked for.
var arrays = []arrayVariables{
	{index: "SLURM_ARRAY_TASK_ID", count: "SLURM_ARRAY_TASK_COUNT", first: "SLURM_ARRAY_TASK_MIN",
		last: "SLURM_ARRAY_TASK_MAX", stepped: "SLURM_ARRAY_TASK_STEP"},
	{index: "JOB_COMPLETION_INDEX"},
	{index: "AWS_BATCH_JOB_ARRAY_INDEX", count: "AWS_BATCH_JOB_ARRAY_SIZE"},
	{index: "TEST_SHARD_INDEX", count: "TEST_TOTAL_SHARDS"},
}

var errShard = errors.New("want K/N with K from 1 to N, such as 3/64, or auto, or auto/N")

// mostShards bounds the number of shards.
const mostShards = 1_000_000

// parseShard reads --shard.
func parseShard(text string) (sweep.Shard, error) {
	which, of, counted := strings.Cut(text, "/")
	n := 0
	if counted {
		var err error
		if n, err = strconv.Atoi(of); err != nil || n < 1 || n > mostShards {
			return sweep.Shard{}, fmt.Errorf("%q: %w", text, errShard)
		}
	}
	if which == "auto" {
		return autoShard(n, os.Getenv)
	}
	k, err := strconv.Atoi(which)
	if err != nil || k < 1 || k > n {
		return sweep.Shard{}, fmt.Errorf("%q: %w", text, errShard)
	}
	return sweep.Shard{Index: k - 1, Count: n}, nil
}

// autoShard takes the shard from the environment of a task in an array. With n, the tasks are
// numbered from 0 to n-1, and fewer of them may run, as when some are repeated.
func autoShard(n int, getenv func(string) string) (sweep.Shard, error) {
	var names []string
	for _, a := range arrays {
		if getenv(a.index) != "" {
			return a.shard(n, getenv)
		}
		names = append(names, a.index)
	}
	return sweep.Shard{}, fmt.Errorf("auto: this process is no task of an array: want one of the variables %s",
		strings.Join(names, ", "))
}

func (a *arrayVariables) shard(n int, getenv func(string) string) (s sweep.Shard, err error) {
	number := func(name string, without int) int {
		text := getenv(name)
		if name == "" || text == "" {
			return without
		}
		v, bad := strconv.Atoi(text)
		if bad != nil && err == nil {
			err = fmt.Errorf("auto: variable %s is %q: want a number", name, text)
		}
		return v
	}
	index, count := number(a.index, 0), number(a.count, 0)
	first, step := number(a.first, 0), number(a.stepped, 1)
	last := number(a.last, first+(count-1)*step)
	switch {
	case err != nil:
		return s, err
	case n > 0:
		s = sweep.Shard{Index: index, Count: n}
	case count < 1:
		return s, fmt.Errorf("auto: %s does not come with the number of tasks: want it in --shard, such as auto/64", a.index)
	case step < 1 || (last-first)/step+1 != count || (index-first)%step != 0:
		return s, fmt.Errorf("auto: the %d tasks of the array are not a range with equal steps: want the number of shards, "+
			"such as auto/64, and tasks numbered from 0", count)
	default:
		s = sweep.Shard{Index: (index - first) / step, Count: count}
	}
	if s.Index < 0 || s.Index >= s.Count {
		return s, fmt.Errorf("auto: %s is %d: want 0 to %d, from a range such as 0-%[3]d", a.index, index, s.Count-1)
	}
	return s, nil
}
