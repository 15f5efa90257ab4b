package devicetest

import "github.com/vramyard/vramyard/device"

// span draws pages, most often whole mappings, and returns the mistakes of a call that requires
// whole mappings.
func (m *pageModel) span() (a device.Addr, n device.Size, mistakes []error) {
	a = m.someAddr()
	n, mistakes = m.somePages(5)
	if x := m.pages[a]; x != nil && m.rng.IntN(4) > 0 && len(mistakes) == 0 {
		a, n = x.addr, device.Size(x.pages)*m.page
		if y := m.pages[a.Add(n)]; y != nil && m.rng.IntN(2) == 0 {
			n += device.Size(y.pages) * m.page
		}
	}
	if len(mistakes) > 0 {
		return a, n, append(mistakes, device.ErrUnmapped, device.ErrInvalid)
	}
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		x := m.pages[p]
		switch {
		case x == nil:
			mistakes = append(mistakes, device.ErrUnmapped)
		case p == a && x.addr != p, p.Add(m.page) == a.Add(n) && x.addr.Add(device.Size(x.pages)*m.page) != a.Add(n):
			mistakes = append(mistakes, device.ErrInvalid)
		}
	}
	return a, n, mistakes
}

func (m *pageModel) stepUnmap() {
	a, n, mistakes := m.span()
	m.unmap(expected(mistakes), a, n)
	if len(mistakes) > 0 {
		return
	}
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		m.pages[p].memory.mapped--
		delete(m.pages, p)
	}
}

func (m *pageModel) stepAccess() {
	a, n, mistakes := m.span()
	to := []device.Access{device.AccessNone, device.AccessRead, device.AccessReadWrite,
		device.AccessReadWrite}[m.rng.IntN(4)]
	m.setAccess(expected(mistakes), a, n, to)
	if len(mistakes) > 0 {
		return
	}
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		m.pages[p].access = to
	}
}

// stepContents fills or compares whole pages.
func (m *pageModel) stepContents() {
	if m.mem == nil {
		return
	}
	a, n, _ := m.span()
	if n = device.AlignUp(max(n, 1), m.page); m.rng.IntN(2) == 0 {
		m.fillPages(a, n)
	} else {
		m.comparePages(a, n)
	}
}

// refused returns the mistakes of an access to pages.
func (m *pageModel) refused(a device.Addr, n device.Size, least device.Access) (mistakes []error) {
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		switch x := m.pages[p]; {
		case x == nil:
			mistakes = append(mistakes, device.ErrUnmapped)
		case x.access < least:
			mistakes = append(mistakes, device.ErrAccess)
		}
	}
	return mistakes
}

// at returns the memory of a page, and the index of the page in that memory.
func (m *pageModel) at(p device.Addr) (*physical, int) {
	x := m.pages[p]
	return x.memory, x.offset + int(p.Sub(x.addr)/m.page)
}

func (m *pageModel) fillPages(a device.Addr, n device.Size) {
	mistakes := m.refused(a, n, device.AccessReadWrite)
	pattern := somePattern(m.rng)
	m.fill(expected(mistakes), a, n, pattern)
	if len(mistakes) > 0 {
		return
	}
	for p := a; p < a.Add(n); p = p.Add(m.page) {
		h, i := m.at(p)
		h.patterns[i], h.known[i] = pattern, true
	}
}

func (m *pageModel) comparePages(a device.Addr, n device.Size) {
	pattern := somePattern(m.rng)
	if mistakes := m.refused(a, n, device.AccessRead); len(mistakes) > 0 {
		m.compare(expected(mistakes), a, n, pattern)
		return
	}
	want, same := device.Addr(0), true
	for p := a; p < a.Add(n) && same; p = p.Add(m.page) {
		h, i := m.at(p)
		if !h.known[i] {
			return // the contents of unfilled memory are unspecified
		}
		for b := p; b < p.Add(min(4, m.page)) && same; b++ {
			if patternByte(b, h.patterns[i]) != patternByte(b, pattern) {
				want, same = b, false
			}
		}
	}
	at, got := m.compare(nil, a, n, pattern)
	if got != same || !same && at != want {
		m.Fatalf("comparing %v at %v with %#x: first difference at %v (none: %v), want %v (none: %v)", n, a, pattern, at, got,
			want, same)
	}
}
