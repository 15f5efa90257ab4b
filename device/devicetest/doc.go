// Package devicetest is the conformance suite of devices.
//
// The whole test of an implementation is one call:
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, func(t testing.TB, ordinal int) device.Device { return open(t, ordinal) })
//	}
//
// # What is asked
//
// A device is asked for each [device.Capability]; checks of what it lacks are skipped, with a
// message. The others make every call in every legal order, and every mistake in as few
// calls as show it. After each call the suite looks at the account:
//
//   - a call that succeeds counts as done, one that fails as failed, of its kind and no other;
//   - a mistake is answered by the sentinel error that the contract names, changes nothing in
//     [device.Usage], and leaves what it was about usable;
//   - peaks are never below what is held, and time does not run backwards;
//   - at the end of each check everything is given back, and the account is empty.
//
// Random sequences of legal and illegal calls run beside a plain model: a map of pages for
// virtual memory, bytes for contents, a list of marks for streams, a list of blocks for pools. The
// flag -devicetest.seed selects them, and a failure prints it.
//
// # What is needed
//
// Two devices with different ordinals, each with 256 MiB free of which at most a quarter is
// taken, so that the suite also runs beside others on a real card. A device whose capacity is
// at most 512 MiB is filled to the brim besides. Mistakes that would corrupt memory are not
// made on purpose: nothing is read or written through addresses that are held by others.
//
// The suite proves itself on devices that each break one promise: see its own tests.
package devicetest
