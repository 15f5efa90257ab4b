// Package place says where strategies run: on a simulated device or on a GPU.
//
// A [Place] is opened as often as something runs there, each time as a fresh device. Simulated devices are as many as
// one likes, at once. A GPU is one: what runs on it runs alone, and addresses and times are its own, not the
// same twice. [Place.Watch] tells beside a run what the driver says is in use on the whole GPU, of all programs.
package place
