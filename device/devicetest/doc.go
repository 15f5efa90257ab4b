// Package devicetest is the conformance suite of devices.
//
// The whole test of an implementation is one call:
//
//	func TestConformance(t *testing.T) {
//		devicetest.Run(t, func(t testing.TB, ordinal int) device.Device { return open(t, ordinal) })
//	}
//
// # Checks
//
// The checks of a [device.Capability] that the device lacks are skipped with a message. The others
// make every call in every legal order, and every mistake in as few calls as possible. After each
// call the suite checks the account:
//
//   - a successful call counts as done, a failed one as failed, under its kind only;
//   - a mistake returns the sentinel error that the contract names, changes nothing in
//     [device.Usage], and leaves its objects usable;
//   - peaks are never below the current values, and time never decreases;
//   - at the end of each check everything is released, and the account is empty.
//
// Random sequences of legal and illegal calls run beside a plain model: a map of pages for
// virtual memory, bytes for contents, a list of marks for streams, a list of blocks for pools. The
// flag -devicetest.seed selects them, and a failure prints it.
//
// # Requirements
//
// The suite needs two devices with different ordinals, each with 256 MiB free. It uses at most a
// quarter of that, so that it also runs on a shared card. It fills a device of at most 512 MiB
// completely. It makes no mistake that would corrupt memory: it never reads or writes addresses
// held by others.
//
// The suite's own tests run it on devices that each break one promise, and require it to fail.
package devicetest
