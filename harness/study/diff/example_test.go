package diff_test

import (
	"fmt"
	"strings"

	"github.com/vramyard/vramyard/harness/study/diff"
)

func Example() {
	result := func(need int) *diff.Result {
		text := fmt.Sprintf(
			`{"schema":"vramyard-compare/1","runs":[{"trace":"chat","strategy":"bfc","min_capacity_bytes":%d}]}`, need)
		r, err := diff.Read(strings.NewReader(text), nil)
		if err != nil {
			panic(err)
		}
		return r
	}
	d, err := diff.Compare(result(1000), result(1050), false)
	if err != nil {
		panic(err)
	}
	c, err := diff.ParseCondition("min_capacity_bytes>+2%")
	if err != nil {
		panic(err)
	}
	if err := d.Judge([]diff.Condition{c}); err != nil {
		panic(err)
	}
	fmt.Println(d.Verdicts[0].Violations[0].Why, *d.Pairs[0].Changes[0].Relative)
	// Output: beyond the limit 0.05
}
