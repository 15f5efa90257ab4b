package direct

// Config of direct allocation: it has no settings.
type Config struct{}

// Unbound implements [alloc.UnboundConfig]: the device alone judges what fits.
func (Config) Unbound() bool { return true }
