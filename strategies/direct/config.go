package direct

// Config of direct allocation: it has no settings.
type Config struct{}

// Baseline implements [setting.BaselineConfig]: nothing is cached, so direct always holds least.
func (Config) Baseline() bool { return true }

// Unbound implements [setting.UnboundConfig]: the capacity only decides which requests are refused.
func (Config) Unbound() bool { return true }
