package pickle_test

import (
	"fmt"
	"log"
	"strings"

	"github.com/vramyard/vramyard/harness/trace/torch/pickle"
)

// The steps of the pickle of the Python list [7, "seven"].
func ExampleScanner() {
	s := pickle.NewScanner(strings.NewReader("\x80\x02](K\x07X\x05\x00\x00\x00sevene."))
	for {
		op, err := s.Next()
		if err != nil {
			log.Fatal(err)
		}
		switch op {
		case pickle.EmptyList:
			fmt.Println("a list")
		case pickle.Int:
			fmt.Println("an integer:", s.Int())
		case pickle.Text:
			fmt.Printf("a string: %s\n", s.Text())
		case pickle.Stop:
			return
		}
	}
	// Output:
	// a list
	// an integer: 7
	// a string: seven
}
