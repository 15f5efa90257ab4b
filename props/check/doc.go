// Package check runs the property suite of package props outside go test, on all cores.
//
// [Subjects] chooses the devices on which a catalogue entry is put to the test, [Run]
// verifies subjects, and [Retell] shows a failure step by step.
//
// # The same result on any number of cores
//
// The seeds of a subject are cut into batches whose size does not depend on the number of
// workers. Workers take batches in order. Once a batch failed, later ones of its subject are
// not begun, and the results of those already begun are dropped; earlier ones were all begun
// before. So what is reported is always the failure with the lowest seed, and the counts are
// those of the batches up to it. The first sequence of a batch depends on nothing that came
// before it: each batch has a device, a strategy and a model of its own.
//
// Planned faults come after all sequences without, so a failure that needs no fault is
// reported without one.
package check
