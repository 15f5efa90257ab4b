package cell_test

import (
	"context"
	"fmt"
	"os"

	"github.com/vramyard/vramyard/harness/cell"
)

func ExampleRecall() {
	folder, err := os.MkdirTemp("", "")
	if err != nil {
		panic(err)
	}
	defer func() { _ = os.RemoveAll(folder) }()
	store, err := cell.OpenDir(folder)
	if err != nil {
		panic(err)
	}
	cells := cell.Over(store)
	for range 2 {
		r, err := cell.Recall(context.Background(), cells, cell.Key{Strategy: "bfc", Semantics: "1"},
			func() (cell.Result[int, float64], error) {
				fmt.Println("computed")
				return cell.Result[int, float64]{Exact: 4096, Measured: 0.1}, nil
			})
		fmt.Println(r.Exact, err)
	}
	// Output:
	// computed
	// 4096 <nil>
	// 4096 <nil>
}
