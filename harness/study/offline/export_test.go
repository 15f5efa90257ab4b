package offline

// Packed places the buffers in the order of a list; steps bounds the work.
func (p *Problem) Packed(list []int32, steps uint64) *Solution { return p.greedy(list, "test", steps) }

// Sorted is the list of an order.
func (p *Problem) Sorted(o Order) []int32 { return p.packer.Sorted(o) }
