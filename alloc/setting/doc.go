// Package setting turns a name and a JSON object into a strategy. A [Spec] describes a strategy
// with its presets and fields, a [Catalogue] is a list of them, and a [Setup] is one strategy with
// its configuration, ready to be built any number of times. Outsiders append to a catalogue of
// their own; nothing registers itself.
//
// A configuration may implement the other interfaces of this package, for instance to learn the
// capacity of the device.
package setting
