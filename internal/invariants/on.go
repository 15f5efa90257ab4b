//go:build invariants

package invariants

// Enabled reports whether the expensive checks run.
const Enabled = true
