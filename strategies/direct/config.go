package direct

// Config of direct allocation: it has no settings.
type Config struct{}

// Baseline implements [setting.BaselineConfig]: it keeps nothing, so that it always holds least.
func (Config) Baseline() bool { return true }

// Unbound implements [setting.UnboundConfig]: the device alone judges what fits.
func (Config) Unbound() bool { return true }
