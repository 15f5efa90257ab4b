package planted

// Exception is an invariant for which no bug of its own is planted.
type Exception struct {
	Invariant string // number
	SeenAs    string // number of the invariant that says the same where the suite looks; "" for none
	Reason    string // why, in a sentence
}

// Exceptions returns the invariants without a bug of their own.
func Exceptions() []Exception {
	return []Exception{
		{"I21", "B8", "it is reported by the number that the strategy gives its own invariant"},
		{"I38", "", "it is about several strategies at once; tests of Differential in props plant bugs for it"},
		{"I44", "", "it is about runs far longer than a sequence; tests of Bounded in props plant bugs for it"},
		{"I45", "", "it is about calls at the same time; tests in props/linear plant bugs for it"},
		{"I51", "", "any bug of I10, seen in the memory; tests of contents in props and props/check look for some so"},
		{"I63", "", "it is about a device and no strategy; tests in props/check have a stand-in for the driver answer wrongly"},
		{"B12", "I5", "Check does not know that every block was freed; the suite does, and then looks for neighbours left apart"},
		{"B13", "I31", "Check sees one instance; the suite compares two"},
		{"W5", "I26", "Check does not know what was refused; the suite does, and then looks for chunks that would have served"},
		{"R4", "", "it is about a part alone and the same part in the whole; a test in strategies/slabbuddy splits sequences"},
	}
}
