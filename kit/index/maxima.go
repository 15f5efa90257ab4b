package index

// [MaxTree] finds the largest of many values of which few change between two calls of Max, such as
// the largest free chunk of thousands of streams. It is a tournament tree of upper bounds. A value
// that rises is entered at once. A value that falls is corrected when it is found at the top, so
// lowering a value costs nothing, and Max costs O(log n) for each value that has fallen since the
// last call.

import "github.com/vramyard/vramyard/device"

// MaxTree holds upper bounds by index. The zero value is empty. It is not safe for concurrent use.
type MaxTree struct {
	rows []device.Size // rows[1] is the root, rows[i] is above 2i and 2i+1, and the second half are the bounds
}

func (t *MaxTree) leaves() int { return len(t.rows) / 2 }

// Bytes returns the host memory of the tree.
func (t *MaxTree) Bytes() device.Size { return BytesOf(t.rows) }

// Raise raises the bound of an index to at least v. O(1) if it was as high before, otherwise O(log
// n). It allocates only above the highest index so far.
func (t *MaxTree) Raise(i uint32, v device.Size) {
	if n := t.leaves(); int(i) >= n || t.rows[n+int(i)] < v {
		t.raise(i, v)
	}
}

// raise is Raise for a rising bound. It is separate so that Raise is inlined.
func (t *MaxTree) raise(i uint32, v device.Size) {
	if int(i) >= t.leaves() {
		t.grow(int(i) + 1)
	}
	for at := t.leaves() + int(i); at > 0 && t.rows[at] < v; at /= 2 {
		t.rows[at] = v
	}
}

func (t *MaxTree) grow(n int) {
	room := max(t.leaves(), 1)
	for room < n {
		room *= 2
	}
	bounds := t.rows[t.leaves():]
	t.rows = make([]device.Size, 2*room)
	copy(t.rows[room:], bounds)
	for at := room - 1; at > 0; at-- {
		t.rows[at] = max(t.rows[2*at], t.rows[2*at+1])
	}
}

// Max returns the largest value, or 0 without values. value returns the value of an index.
//
// Precondition: Raise was called for each value when it rose.
func (t *MaxTree) Max(value func(i uint32) device.Size) device.Size {
	if len(t.rows) == 0 {
		return 0
	}
	for {
		top, at := t.rows[1], 1
		if top == 0 {
			return 0
		}
		for at < t.leaves() {
			if at *= 2; t.rows[at] != top {
				at++
			}
		}
		v := value(uint32(at - t.leaves()))
		if v == top {
			return v
		}
		t.rows[at] = v
		for at /= 2; at > 0; at /= 2 {
			t.rows[at] = max(t.rows[2*at], t.rows[2*at+1])
		}
	}
}
