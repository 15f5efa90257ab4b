package props_test

import "github.com/vramyard/vramyard/alloc"

type pooledCounts struct{}

func (p *pooled) count() {}

func (p *pooled) note(a alloc.Action) {
	if p.tell != nil {
		p.tell(a)
	}
}
