package linear_test

import (
	"fmt"

	"github.com/anishathalye/porcupine"

	"github.com/vramyard/vramyard/props/linear"
)

// Two callers that overlap are granted one block: no order of the calls explains both answers.
func ExampleCheck() {
	grant := func(caller int, from, to int64) porcupine.Operation {
		return porcupine.Operation{ClientId: caller, Input: linear.Call{Kind: linear.Alloc}, Call: from,
			Output: linear.Answer{Addr: 4096, Live: 1}, Return: to}
	}
	fmt.Println(linear.Check(linear.History{grant(0, 1, 3), grant(1, 2, 4)}, 2))
	// Output:
	// invariant I45 (linearizability): no order of the 2 calls explains their answers; those around which every order fails:
	// 	caller 0, 1 to 3: Alloc: 0x1000
}
