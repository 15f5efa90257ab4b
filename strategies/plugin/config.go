package plugin

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/vramyard/vramyard/alloc"
	"github.com/vramyard/vramyard/alloc/promise"
	"github.com/vramyard/vramyard/alloc/setting"
	"github.com/vramyard/vramyard/device"
	"github.com/vramyard/vramyard/internal/nearest"
)

// Name is that of the strategy in catalogues; what follows its colon names the plug-in.
const Name = "plugin"

// Config names a plug-in and the functions in it. It has no useful zero value: there is no plug-in
// that everybody has.
type Config struct {
	// Path of the shared object.
	Path string `json:"path,omitempty" doc:"shared object"`
	// SHA256 of the shared object; filled in. A file with another one is refused.
	SHA256 string `json:"sha256,omitempty" doc:"hash of the shared object, filled in; one with another hash is refused"`
	// Alloc is the function that allocates: void *(size_t size, int device, cudaStream_t stream).
	Alloc string `json:"alloc,omitempty" doc:"symbol of void *(size_t, int device, cudaStream_t)"`
	// Free is the function that frees: void (void *, size_t size, int device, cudaStream_t stream).
	Free string `json:"free,omitempty" doc:"symbol of void (void *, size_t, int device, cudaStream_t)"`
	// Init is the function that is called first: void (int devices); "" for none.
	Init string `json:"init,omitempty" doc:"symbol of void (int devices), called first; empty for none"`
	// Reset is the function that gives back what is cached: void (void); "" for none.
	Reset string `json:"reset,omitempty" doc:"symbol of void (void), called to trim; empty for none"`
	// RecordStream is the function that is told of uses: void (void *, cudaStream_t); "" for none.
	RecordStream string `json:"record_stream,omitempty" doc:"symbol of void (void *, cudaStream_t), told of uses by other streams; empty for none"`
	// Fraction is the function that bounds memory: void (double, int device); "" for none.
	Fraction string `json:"fraction,omitempty" doc:"symbol of void (double, int device), called with share behind init; empty for none"`
	// Share is what Fraction is called with, from 0 to 1; default 1.
	Share float64 `json:"share,omitempty" doc:"what fraction is called with (default 1)"`
	// Base is the function that tells where the memory of a block begins: void *(void *, size_t *); ""
	// for none.
	Base string `json:"base,omitempty" doc:"symbol of void *(void *, size_t *), held to what is live by check; empty for none"`
	// Device is the number of the device that the functions are told.
	Device int `json:"device,omitempty" doc:"number of the device that the functions are told"`
	// Align in bytes, a power of two: blocks start at multiples of it; default 512.
	Align device.Size `json:"align,omitempty" doc:"blocks have to start at multiples of it (default 512)"`
	// Timeout is how long a call may take, as "30s", which is the default.
	Timeout string `json:"timeout,omitempty" doc:"how long a call may take (default 30s)"`
}

// defaultTimeout is so long that only what never ends takes it: a call of a driver may take a
// second.
const defaultTimeout = "30s"

// mostDevice is the highest number of a device; no machine has as many.
const mostDevice = 255

var (
	errNoPath  = errors.New("plugin: no file: want plugin:PATH?alloc=NAME&free=NAME")
	errSymbols = errors.New("plugin: want the names of two functions: plugin:PATH?alloc=NAME&free=NAME")
)

// Spec returns the entry of a catalogue by which names like
// "plugin:./lib.so?alloc=my_malloc&free=my_free" are understood.
func Spec() setting.Spec {
	s := setting.SpecOf(Name, "an allocator of others out of a shared object: plugin:PATH?alloc=NAME&free=NAME", New)
	s.Given = parse
	return s
}

// parse reads PATH?key=value&…, in which percent stands before two digits as in any address, and
// returns the fields in JSON.
func parse(text string) (string, error) {
	path, query, _ := strings.Cut(text, "?")
	path, err := url.PathUnescape(path)
	if err != nil {
		return "", fmt.Errorf("plugin: path: %w", err)
	}
	values, err := url.ParseQuery(query)
	if err != nil {
		return "", fmt.Errorf("plugin: %q: %w", query, err)
	}
	c := Config{Path: path}
	for _, f := range c.fields() {
		given := values[f.name]
		delete(values, f.name)
		switch {
		case len(given) > 1:
			return "", fmt.Errorf("plugin: %s is given %d times", f.name, len(given))
		case len(given) == 1:
			if err := f.set(given[0]); err != nil {
				return "", fmt.Errorf("plugin: %s=%s: %w", f.name, given[0], err)
			}
		}
	}
	if unknown := slices.Sorted(maps.Keys(values)); len(unknown) > 0 {
		return "", fmt.Errorf("plugin: unknown key %q: %s", unknown[0], nearest.Want(unknown[0], c.keys()))
	}
	encoded, err := json.Marshal(c)
	return string(encoded), err
}

// field is a key of the address, and what its value does.
type field struct {
	name string
	set  func(value string) error
}

// keys returns the names of the fields that an address may have.
func (c *Config) keys() (names []string) {
	for _, f := range c.fields() {
		names = append(names, f.name)
	}
	return names
}

// fields returns the keys that an address may have.
func (c *Config) fields() []field {
	text := func(to *string) func(string) error {
		return func(value string) error {
			if *to = value; value == "" {
				return errors.New("want a value")
			}
			return nil
		}
	}
	return []field{
		{"alloc", text(&c.Alloc)}, {"free", text(&c.Free)}, {"init", text(&c.Init)}, {"reset", text(&c.Reset)},
		{"record_stream", text(&c.RecordStream)}, {"fraction", text(&c.Fraction)}, {"base", text(&c.Base)},
		{"timeout", text(&c.Timeout)},
		{"share", func(value string) (err error) {
			c.Share, err = strconv.ParseFloat(value, 64)
			return err
		}},
		{"device", func(value string) (err error) {
			c.Device, err = strconv.Atoi(value)
			return err
		}},
		{"align", func(value string) (err error) {
			c.Align, err = device.ParseSize(value)
			return err
		}},
	}
}

// WithDefaults returns c with every default filled in, the hash of the file among them. It reads
// the file and fails with one error that names what is wrong with it, or with a field.
func (c Config) WithDefaults() (Config, error) {
	c.Share, c.Align, c.Timeout = cmp.Or(c.Share, 1), cmp.Or(c.Align, 512), cmp.Or(c.Timeout, defaultTimeout)
	limit, err := time.ParseDuration(c.Timeout)
	switch {
	case c.Path == "":
		return c, errNoPath
	case c.Alloc == "" || c.Free == "":
		return c, errSymbols
	case err != nil || limit <= 0:
		return c, fmt.Errorf("plugin: timeout %q: want a time such as %q", c.Timeout, defaultTimeout)
	case !(c.Share > 0 && c.Share <= 1):
		return c, fmt.Errorf("plugin: share %v: want a number above 0 and up to 1", c.Share)
	case c.Device < 0 || c.Device > mostDevice:
		return c, fmt.Errorf("plugin: device %d: want 0 to %d", c.Device, mostDevice)
	case !device.IsPowerOfTwo(c.Align) || c.Align > device.GiB:
		return c, fmt.Errorf("plugin: align %d: want a power of two up to 1GiB", uint64(c.Align))
	}
	hash, err := inspect(c.Path, c.symbols())
	if err != nil {
		return c, fmt.Errorf("plugin: %w", err)
	}
	if c.SHA256 != "" && c.SHA256 != hash {
		return c, fmt.Errorf("plugin: %s has the SHA-256 %s: want %s", c.Path, hash, c.SHA256)
	}
	c.SHA256 = hash
	return c, nil
}

// symbols returns the names of the functions, "" for those that are not given.
func (c *Config) symbols() []string {
	return []string{c.Alloc, c.Free, c.Init, c.Reset, c.RecordStream, c.Fraction, c.Base}
}

// timeout returns how long a call may take.
//
// Precondition: the defaults are filled in.
func (c *Config) timeout() time.Duration {
	d, _ := time.ParseDuration(c.Timeout) // WithDefaults has judged it
	return d
}

// Promises implements [promise.Promiser]: what can be asked of any plug-in from outside.
func (c Config) Promises() promise.Set {
	p := promise.Set{
		FreeReleases: true,
		Honours:      func(r alloc.Request) bool { return r.Align <= c.Align },
		Except: []promise.Exception{
			{Invariant: "I24", Reason: "a request for no bytes is passed on, and what the plug-in does about it shows"},
			{Invariant: "I29", Reason: "what is cached is the plug-in's own affair, and so is what it gives back"},
			{Invariant: "I48", Reason: "whether it means to have memory under two addresses cannot be told"},
		},
	}
	if c.RecordStream != "" {
		p.Except = append(p.Except, promise.Exception{Invariant: "I50", Reason: "what it keeps for streams after a free " +
			"cannot be seen"})
	}
	return p
}
