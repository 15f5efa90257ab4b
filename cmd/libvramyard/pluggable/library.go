package pluggable

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/harness/provenance"
)

// Version is the version of the library.
const Version = provenance.Version

// mostDevices bounds the number of GPUs: PyTorch numbers them in a byte.
const mostDevices = 128

// Host is the environment of a [Library].
type Host struct {
	Env        func(name string) string                 // value of an environment variable, "" if it is not set
	Pid        int                                      // process id
	Strategies setting.Catalogue                        // strategies that can be selected
	Open       func(ordinal int) (device.Device, error) // opens a real GPU; nil if there are none
}

// Library holds the allocators of all GPUs of a process. It is safe for concurrent use. Its methods
// never panic: after an internal panic every request fails with the same error.
type Library struct {
	host    Host
	once    sync.Once
	conf    config
	wrong   error // error in the environment
	gpus    [mostDevices]atomic.Pointer[instance]
	list    atomic.Pointer[[]*instance] // the instances, by number
	making  sync.Mutex
	first   int // number of the first instance, -1 for none
	shares  [mostDevices]float64
	devices int // number of GPUs passed to Init, 0 if it was not called
	calls   atomic.Uint64
	broken  atomic.Pointer[error]
}

// New returns a library. It reads the environment at the first call that needs it.
func New(h Host) *Library { return &Library{host: h, first: -1} }

func (l *Library) prepare() error {
	l.once.Do(func() { l.conf, l.wrong = parse(l.host.Env, l.host.Strategies) })
	if l.wrong != nil {
		return fmt.Errorf("vramyard: %w", l.wrong)
	}
	if e := l.broken.Load(); e != nil {
		return *e
	}
	return nil
}

// survive turns a panic into an error and disables the library.
func (l *Library) survive(err *error) {
	if p := recover(); p != nil {
		bug := fmt.Errorf("vramyard: internal error, nothing is allocated any more: %v\n%s", p, debug.Stack())
		l.broken.CompareAndSwap(nil, &bug)
		*err = *l.broken.Load()
	}
}

// gpu returns the instance of a GPU and builds it on first use.
func (l *Library) gpu(ordinal int) (*instance, error) {
	if err := l.prepare(); err != nil {
		return nil, err
	}
	if ordinal < 0 || ordinal >= mostDevices {
		return nil, fmt.Errorf("vramyard: device %d: want a number from 0 to %d", ordinal, mostDevices-1)
	}
	if n := l.gpus[ordinal].Load(); n != nil {
		return n, nil
	}
	l.making.Lock()
	defer l.making.Unlock()
	if n := l.gpus[ordinal].Load(); n != nil {
		return n, nil
	}
	if l.devices > 0 && ordinal >= l.devices {
		return nil, fmt.Errorf("vramyard: device %d: there are %d", ordinal, l.devices)
	}
	dev, err := l.conf.open(ordinal, l.host.Open)
	if err != nil {
		return nil, fmt.Errorf("vramyard: device %d: %w", ordinal, err)
	}
	n, err := newInstance(&l.conf, ordinal, dev, l.shares[ordinal])
	if err != nil {
		return nil, fmt.Errorf("vramyard: device %d: %w", ordinal, err)
	}
	if l.first < 0 {
		l.first = ordinal
	}
	list := append(slices.Clone(l.made()), n)
	slices.SortFunc(list, func(a, b *instance) int { return cmp.Compare(a.ordinal, b.ordinal) })
	l.list.Store(&list)
	l.gpus[ordinal].Store(n)
	return n, nil
}

// with calls f with the instance of a GPU, under its lock.
func (l *Library) with(ordinal int, f func(*instance) error) (err error) {
	defer l.survive(&err)
	n, err := l.gpu(ordinal)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return ours(f(n))
}

// ours adds the prefix of the library to an error.
func ours(err error) error {
	if err == nil {
		return nil
	}
	if _, oom := errors.AsType[*OutOfMemoryError](err); oom {
		return err // has PyTorch's text
	}
	return fmt.Errorf("vramyard: %w", err)
}

// Alloc grants size bytes on a stream of a GPU. into is the private pool that BeginPool returned, 0
// for none. A request for 0 bytes gets the address 0. The error is an [*OutOfMemoryError] if memory
// is exhausted.
func (l *Library) Alloc(size device.Size, ordinal int, s device.Stream, into alloc.PoolID) (a device.Addr, err error) {
	defer l.survive(&err)
	n, err := l.gpu(ordinal)
	if err != nil {
		return 0, err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if l.conf.panicAt > 0 && l.calls.Add(1) == l.conf.panicAt {
		panic(EnvPanic)
	}
	a, err = n.alloc(size, s, into)
	return a, ours(err)
}

// Free frees a block of Alloc; the address 0 is a no-op. If the given GPU does not have the block
// it is freed on the GPU that has it.
func (l *Library) Free(a device.Addr, ordinal int) (err error) {
	defer l.survive(&err)
	if a == 0 {
		return nil
	}
	if made := l.made(); len(made) == 1 {
		ordinal = made[0].ordinal
	} else if owner, ok := l.owner(a); ok {
		ordinal = owner
	}
	n, err := l.gpu(ordinal)
	if err != nil {
		return err
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	return ours(n.free(a))
}

func (l *Library) owner(a device.Addr) (int, bool) {
	for _, n := range l.made() {
		n.mu.Lock()
		_, ok := n.live[a-n.shift]
		n.mu.Unlock()
		if ok {
			return n.ordinal, true
		}
	}
	return 0, false
}

// made returns the instances, by number. The caller must not change the slice.
func (l *Library) made() []*instance {
	if list := l.list.Load(); list != nil {
		return *list
	}
	return nil
}

// Init sets the number of GPUs; 0 means unknown.
func (l *Library) Init(devices int) (err error) {
	defer l.survive(&err)
	l.making.Lock()
	defer l.making.Unlock()
	l.devices = max(l.devices, devices)
	return l.prepare()
}

// Reset releases the cached memory of every GPU, as torch.cuda.empty_cache does.
func (l *Library) Reset() (err error) {
	for _, n := range l.made() {
		err = errors.Join(err, l.with(n.ordinal, (*instance).empty))
	}
	return err
}

// MemoryFraction limits the bytes held on a GPU to a share of its capacity, above 0 and up to 1.
// Memory that is held already stays.
func (l *Library) MemoryFraction(share float64, ordinal int) (err error) {
	defer l.survive(&err)
	if err := l.prepare(); err != nil {
		return err
	}
	if !(share > 0 && share <= 1) || ordinal < 0 || ordinal >= mostDevices {
		return fmt.Errorf("vramyard: memory fraction %v of device %d: want a share above 0 and up to 1", share, ordinal)
	}
	l.making.Lock()
	l.shares[ordinal] = share
	n := l.gpus[ordinal].Load()
	l.making.Unlock()
	if n == nil {
		return nil // the instance will be built with the limit
	}
	return l.with(ordinal, func(n *instance) error { return n.restrict(share) })
}

// Base returns the start and size of the region that contains an address, or false.
func (l *Library) Base(a device.Addr) (at device.Addr, size device.Size, ok bool) {
	for _, n := range l.made() {
		err := l.with(n.ordinal, func(n *instance) error {
			at, size, ok = n.base(a)
			return nil
		})
		if ok || err != nil {
			break
		}
	}
	return at, size, ok
}

// RecordStream records that a stream uses the block at an address.
func (l *Library) RecordStream(a device.Addr, s device.Stream) error {
	if a == 0 {
		return nil
	}
	ordinal, ok := l.owner(a)
	if made := l.made(); !ok && len(made) == 0 {
		return fmt.Errorf("vramyard: record_stream of %v: no live block starts there", a)
	} else if !ok {
		ordinal = made[0].ordinal // counts as a mistake there
	}
	return l.with(ordinal, func(n *instance) error { return n.use(a, s) })
}

// BeginPool opens a private pool and returns its number.
func (l *Library) BeginPool(ordinal int, k PoolKey) (id alloc.PoolID, err error) {
	err = l.with(ordinal, func(n *instance) (err error) {
		id, err = n.begin(k)
		return err
	})
	return id, err
}

// EndPool closes a private pool.
func (l *Library) EndPool(ordinal int, k PoolKey) error {
	return l.with(ordinal, func(n *instance) error { return n.end(k) })
}

// ReleasePool drops one user of a private pool.
func (l *Library) ReleasePool(ordinal int, k PoolKey) error {
	return l.with(ordinal, func(n *instance) error { return n.release(k) })
}

// DumpTrace writes the events recorded so far. The empty path is the one in the environment;
// [fileOf] describes its placeholders.
func (l *Library) DumpTrace(path string) (err error) {
	defer l.survive(&err)
	if err := l.prepare(); err != nil {
		return err
	}
	if l.conf.trace == "" {
		return fmt.Errorf("vramyard: nothing is recorded: set %s", EnvTrace)
	}
	if path == "" {
		path = l.conf.trace
	}
	for _, n := range l.made() {
		n.mu.Lock()
		e := n.rec.write(fileOf(path, n.ordinal, n.ordinal == l.first, l.host.Pid))
		n.mu.Unlock()
		if e != nil {
			err = errors.Join(err, fmt.Errorf("vramyard: %w", e))
		}
	}
	return err
}

// Finish writes the files that the environment names, and compares poisoned memory a last time.
func (l *Library) Finish() (err error) {
	defer l.survive(&err)
	if len(l.made()) == 0 || l.prepare() != nil {
		return nil // no output was requested, or the error was returned before
	}
	if l.conf.poison {
		for _, n := range l.made() {
			err = errors.Join(err, l.with(n.ordinal, func(n *instance) error { return n.poison.all() }))
		}
	}
	if l.conf.trace != "" {
		err = errors.Join(err, l.DumpTrace(""))
	}
	if l.conf.stats != "" {
		err = errors.Join(err, l.writeStats(fileOf(l.conf.stats, l.first, true, l.host.Pid)))
	}
	return err
}

func sortedKeys[V any](m map[device.Addr]V) []device.Addr { return slices.Sorted(maps.Keys(m)) }
