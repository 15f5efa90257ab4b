package plugin

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
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

// Name is the name of the strategy in catalogues. The text after its colon names the plug-in.
const Name = "plugin"

// Config names a plug-in and its functions. The zero value is invalid.
type Config struct {
	// Path of the shared object.
	Path string `json:"path,omitempty" doc:"shared object"`
	// SHA256 of the shared object; filled in. A file with another hash is refused.
	SHA256 string `json:"sha256,omitempty" doc:"hash of the shared object, filled in; one with another hash is refused"`
	// Alloc is the function that allocates: void *(size_t size, int device, cudaStream_t stream).
	Alloc string `json:"alloc,omitempty" doc:"symbol of void *(size_t, int device, cudaStream_t)"`
	// Free is the function that frees: void (void *, size_t size, int device, cudaStream_t stream).
	Free string `json:"free,omitempty" doc:"symbol of void (void *, size_t, int device, cudaStream_t)"`
	// Init is called before any other function: void (int devices); "" for none.
	Init string `json:"init,omitempty" doc:"symbol of void (int devices), called first; empty for none"`
	// Reset is the function that releases cached memory: void (void); "" for none.
	Reset string `json:"reset,omitempty" doc:"symbol of void (void), called to trim; empty for none"`
	// RecordStream is the function that records uses by other streams: void (void *, cudaStream_t);
	// "" for none.
	RecordStream string `json:"record_stream,omitempty" doc:"symbol of void (void *, cudaStream_t), called for uses by other streams; empty for none"`
	// Fraction is the function that bounds memory: void (double, int device); "" for none.
	Fraction string `json:"fraction,omitempty" doc:"symbol of void (double, int device), called with share after init; empty for none"`
	// Share is the argument of Fraction, from 0 to 1; default 1.
	Share float64 `json:"share,omitempty" doc:"argument of fraction (default 1)"`
	// Base is the function that returns the start of the memory of a block: void *(void *, size_t
	// *); "" for none.
	Base string `json:"base,omitempty" doc:"symbol of void *(void *, size_t *), compared with the live blocks by check; empty for none"`
	// Device is the device number that is passed to the functions.
	Device int `json:"device,omitempty" doc:"device number passed to the functions"`
	// Align is the alignment of every block in bytes, a power of two; default 512.
	Align device.Size `json:"align,omitempty" doc:"alignment of every block in bytes (default 512)"`
	// Timeout is the time limit of a call, such as "30s", which is the default.
	Timeout string `json:"timeout,omitempty" doc:"time limit of a call (default 30s)"`
}

// defaultTimeout is long enough for every call that ends: a driver call may take a second.
const defaultTimeout = "30s"

// maxDevice is the highest device number.
const maxDevice = 255

var (
	errNoPath  = errors.New("plugin: no file: want plugin:PATH?alloc=NAME&free=NAME")
	errSymbols = errors.New("plugin: want the names of two functions: plugin:PATH?alloc=NAME&free=NAME")
)

// Spec returns the catalogue entry that parses names such as
// "plugin:./lib.so?alloc=my_malloc&free=my_free".
func Spec() setting.Spec {
	s := setting.SpecOf(Name, "a third-party allocator in a shared object: plugin:PATH?alloc=NAME&free=NAME", New)
	s.Given = parse
	return s
}

// parse reads PATH?key=value&…, percent-encoded as in a URL, and returns the fields in JSON.
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

// field is a key of the query, and the function that sets its value.
type field struct {
	name string
	set  func(value string) error
}

func (c *Config) keys() (names []string) {
	for _, f := range c.fields() {
		names = append(names, f.name)
	}
	return names
}

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

// WithDefaults returns c with every default filled in, including the hash of the file. It reads the
// file. The error names the invalid file or field.
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
	case c.Device < 0 || c.Device > maxDevice:
		return c, fmt.Errorf("plugin: device %d: want 0 to %d", c.Device, maxDevice)
	case !device.IsPowerOfTwo(c.Align) || c.Align > device.GiB:
		return c, fmt.Errorf("plugin: align %d: want a power of two up to 1GiB", uint64(c.Align))
	}
	hash, _, err := inspect(c.Path, c.symbols())
	if err != nil {
		return c, fmt.Errorf("plugin: %w", err)
	}
	if c.SHA256 != "" && c.SHA256 != hash {
		return c, fmt.Errorf("plugin: %s has the SHA-256 %s: want %s", c.Path, hash, c.SHA256)
	}
	c.SHA256 = hash
	return c, nil
}

// system are the libraries that decide no placement, by the part of their name before ".so": the
// system's for C and C++, and the names of the stand-ins, which belong to the host.
var system = []string{
	"ld-linux", "ld-linux-aarch64", "ld-linux-x86-64", "libc", "libdl", "libgcc_s", "libm", "libpthread", "librt",
	"libstdc++", "libcuda", "libcudart",
}

// Semantics implements [setting.ForeignConfig] by a hash of the shared object and of the host's
// sources. It returns "" if the defaults are not filled in, if the file cannot be read or has
// changed since, and if the object needs a library that is not the system's: only the dynamic
// linker knows its file. Libraries that the plug-in loads itself, and variables of the environment
// that it reads, are not seen.
func (c Config) Semantics() string {
	hash, libraries, err := inspect(c.Path, nil)
	if err != nil || hash != c.SHA256 {
		return ""
	}
	for _, l := range libraries {
		if name, _, _ := strings.Cut(l, ".so"); !slices.Contains(system, name) {
			return ""
		}
	}
	r, err := recipe()
	if err != nil {
		return ""
	}
	host, err := r.Key()
	if err != nil {
		return ""
	}
	both := sha256.Sum256([]byte(hash + host))
	return hex.EncodeToString(both[:])
}

// symbols returns the names of all functions, "" for functions that are not set.
func (c *Config) symbols() []string {
	return []string{c.Alloc, c.Free, c.Init, c.Reset, c.RecordStream, c.Fraction, c.Base}
}

// Precondition of timeout: the defaults are filled in.
func (c *Config) timeout() time.Duration {
	d, _ := time.ParseDuration(c.Timeout) // checked by WithDefaults
	return d
}

// Promises implements [promise.Promiser] with the promises that can be checked from outside.
func (c Config) Promises() promise.Set {
	p := promise.Set{
		FreeReleases: true,
		Honours:      func(r alloc.Request) bool { return r.Align <= c.Align },
		Except: []promise.Exception{
			{Invariant: "I24", Reason: "requests for no bytes are passed to the plug-in"},
			{Invariant: "I29", Reason: "the plug-in's cache cannot be seen"},
			{Invariant: "I48", Reason: "intended aliases cannot be distinguished"},
		},
	}
	if c.RecordStream != "" {
		p.Except = append(p.Except, promise.Exception{Invariant: "I50", Reason: "blocks pending on streams cannot be seen"})
	}
	return p
}
