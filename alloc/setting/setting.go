package setting

import (
	"github.com/vramyard/vramyard/alloc/power"
	"github.com/vramyard/vramyard/device"
)

// Demand holds the properties of a trace that determine which settings can make a difference.
type Demand struct {
	Sizes []device.Size // distinct requested sizes in bytes, ascending
	Pools bool          // some requests go to private pools
	Polls bool          // pending memory is polled for
	// Held is the most bytes that the reduced configuration holds in the trace on a device of Capacity
	// bytes, which refuses it nothing. It is 0 if unknown. With it the reduction need make the same
	// decisions on that device only.
	Held, Capacity device.Size

	Options power.PoolOptions // options that some private pool has

	Changes bool // the program changes settings; see [power.Configurable]
}

// Largest returns the largest requested size in bytes, 0 without requests.
func (d Demand) Largest() device.Size {
	if len(d.Sizes) == 0 {
		return 0
	}
	return d.Sizes[len(d.Sizes)-1]
}

// ReducedConfig is a configuration that can drop the settings without effect on a demand.
type ReducedConfig[C any] interface {
	// Reduced returns the simplest configuration with which a strategy makes the same decisions
	// as with this one, on every device, in every trace of a demand; with [Demand].Held, on the device
	// for which that is known. Two configurations that reduce to the same one need not both be tried.
	// It is called on a configuration with its defaults filled in.
	Reduced(Demand) C
}

// Export is a configuration as the users of a framework set it.
type Export struct {
	Framework string `json:"framework"` // name of the framework
	// variables to set, each NAME=VALUE; none for the framework's default
	Environment []string `json:"environment,omitempty"`
	Options     []string `json:"options,omitempty"` // options that no variable sets, each NAME=VALUE
	Python      []string `json:"python,omitempty"`  // lines of code that set Options
	From        string   `json:"from,omitempty"`    // first release with these settings; none: all have them
	Since       string   `json:"since,omitempty"`   // first release that reads Environment; none: all do
	Before      []string `json:"before,omitempty"`  // variables that releases before Since read instead

	// calls of the program that change settings while it runs, in order; none for settings that hold
	// throughout
	Calls []Call `json:"calls,omitempty"`
}

// Call is a call of the program that changes the settings of its allocator; see
// [power.Configurable].
type Call struct {
	Mark string `json:"mark"` // text of the mark at which the program makes it
	Conf string `json:"conf"` // all settings from then on
}

// PhasedConfig is a configuration with settings that hold between two marks of a trace.
type PhasedConfig interface {
	// Marks returns the texts of these marks, the one at which the settings begin to hold first. A
	// replay refuses a trace without them, or with the marks of the end before the others only: the
	// settings would never hold, or never end.
	Marks() []string
}

// Marks returns the marks that the configuration needs in a trace; see [PhasedConfig].
func (s Setup) Marks() []string {
	if p, ok := s.Config.(PhasedConfig); ok {
		return p.Marks()
	}
	return nil
}

// ExportedConfig is a configuration that users of a framework may be able to choose.
type ExportedConfig interface {
	// Exports returns the frameworks that have this configuration, each once and with its settings.
	Exports() []Export
}

// ShareConfig is a configuration whose limit may be a share of the device's memory.
type ShareConfig[C any] interface {
	// Share returns the share, from 0 to 1; 0 if no share limits the strategy.
	Share() float64
	// WithShare returns the configuration with another share.
	WithShare(share float64) C
}

// UnboundConfig is a configuration with which a strategy may be independent of the device's
// capacity.
type UnboundConfig interface {
	// Unbound reports that the capacity of the device, and a limit that follows it, affect only which
	// requests fail. So a trace without failures has the same result on every device that is large
	// enough for the peak of the held bytes.
	Unbound() bool
}

// LockingConfig is a configuration of a strategy that may have its own locks.
type LockingConfig[C any] interface {
	// WithLocks returns the configuration with which the strategy is [power.Concurrent].
	WithLocks() C
}

// WithLocks returns the setup with which the strategy is safe for concurrent use by its own locks,
// and false if it has no locks.
func (s Setup) WithLocks() (Setup, bool) {
	if s.withLocks == nil {
		return Setup{}, false
	}
	return s.like(s.withLocks()), true
}

// Unbound reports whether the capacity of the device affects only which requests fail.
func (s Setup) Unbound() bool {
	u, ok := s.Config.(UnboundConfig)
	return ok && u.Unbound()
}

// Reduced returns the setup with the simplest configuration that makes the same decisions in every
// trace of a demand, or the setup itself if its configuration is not a [ReducedConfig].
func (s Setup) Reduced(d Demand) Setup { return s.like(s.reduced(d)) }

// Exports returns how users of each framework choose the configuration; none if they cannot.
func (s Setup) Exports() []Export {
	if e, ok := s.Config.(ExportedConfig); ok {
		return e.Exports()
	}
	return nil
}

// Share returns the share of the device's memory that limits the strategy; 0 if none does.
func (s Setup) Share() float64 {
	if c, ok := s.Config.(interface{ Share() float64 }); ok {
		return c.Share()
	}
	return 0
}

// WithShare returns the setup with another share of the device's memory as its limit, and false if
// its configuration is not a [ShareConfig].
func (s Setup) WithShare(share float64) (Setup, bool) {
	if s.withShare == nil {
		return Setup{}, false
	}
	return s.like(s.withShare(share)), true
}
