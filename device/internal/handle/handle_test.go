package handle_test

import (
	"testing"

	"github.com/vramyard/vramyard/device/internal/handle"
)

// TestHandlesOfRemovedEntriesStayInvalid fills slots again and again and asks for every number that
// there was.
func TestHandlesOfRemovedEntriesStayInvalid(t *testing.T) {
	mine, other := handle.Table[int]{Ordinal: 3}, handle.Table[int]{Ordinal: 4}
	gone := map[uint64]bool{0: true, ^uint64(0): true}
	for round := range 50 {
		number, thing, ok := mine.Add()
		foreign, _, _ := other.Add()
		if !ok || gone[number] || number == foreign {
			t.Fatalf("round %d: the new number is %d, %v", round, number, ok)
		}
		*thing = round
		i, ok := mine.Find(number)
		if !ok || *mine.At(i) != round || mine.Number(i) != number {
			t.Fatalf("round %d: number %d is not found", round, number)
		}
		for n := range gone {
			if _, ok := mine.Find(n); ok {
				t.Fatalf("round %d: number %d names something, and is gone", round, n)
			}
		}
		if _, ok := mine.Find(foreign); ok {
			t.Fatalf("round %d: a number of another table names something", round)
		}
		if round%3 > 0 { // every third stays
			mine.Remove(i)
			gone[number] = true
		}
	}
	var all []int
	for thing := range mine.All {
		all = append(all, *thing)
	}
	if len(all) != 17 {
		t.Errorf("17 things are left, %d are yielded: %v", len(all), all)
	}
}

// TestNothingIsAllocatedAgain adds and removes in a table that has held as many.
func TestNothingIsAllocatedAgain(t *testing.T) {
	var table handle.Table[[4]uint64]
	cycle := func() {
		number, _, _ := table.Add()
		i, _ := table.Find(number)
		table.Remove(i)
	}
	cycle()
	if n := testing.AllocsPerRun(100, cycle); n != 0 {
		t.Errorf("a thing that came and went took %v allocations", n)
	}
}
