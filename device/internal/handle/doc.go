// Package handle is a slot table with generation-checked handles: a handle to a removed entry is
// detected and never reused. Devices name their handles, events and pools with it.
package handle
