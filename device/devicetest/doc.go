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
// A device is asked for each [device.Capability]; checks of missing capabilities are skipped with a
// message. The others make every call in every legal order, and every mistake in as few calls as
// possible. After each call the suite checks the account:
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
// It needs two devices with different ordinals, each with 256 MiB free. At most a quarter of that
// is used, so that the suite also runs on a shared card. A device with a capacity of at most 512
// MiB is also filled completely. Mistakes that would corrupt memory are not made on purpose:
// addresses held by others are never read or written.
//
// The suite proves itself on devices that each break one promise: see its own tests.
package devicetest
