// Package check runs the property suite of package props outside go test, on all cores.
//
// [Subjects] chooses the devices for the tests of a catalogue entry, [Run]
// verifies subjects, and [Reproduce] shows a failure step by step.
//
// # The same result on any number of cores
//
// The seeds of a subject are cut into batches whose size does not depend on the number of workers.
// Workers take batches in order. After a failed batch no later batch of its subject is begun, and
// the results of later ones already begun are dropped; all earlier ones were begun before. So the
// report always has the failure with the lowest seed and the counts up to its batch. Batches are
// independent: each has its own device, strategy and model.
//
// Planned faults come after all sequences without, so a failure that needs no fault is
// reported without one.
package check
