// Package mirror runs a real device, the card, beside a simulated one, the model, to verify on the
// card what is proved on the model.
//
// Callers of a [Device] see the addresses, results and time of the model. Each call is repeated on
// the card, at the card's own addresses, and the results are compared. [Device.Differs] returns the
// first difference. After it the card is not called any more, because the two states have diverged.
//
// # Compared properties
//
//   - Success, and the error of package device.
//   - Sizes and granularity. The card's regions are aligned, disjoint and not at zero.
//   - Free and total memory and, with [Device.Settle], the account.
//   - Events: done on the model implies done on the card once the host has waited for it.
//   - Contents: a fill also writes to the card, either all bytes or marks at both ends and at each
//     page of a range ([Extent]); a comparison reads them back.
//
// # Properties that are not compared
//
//   - Addresses, and whether two ranges are adjacent: only the model's count. An adjacent range is
//     adjacent on the card too if there is room.
//   - Time and work: the card runs no work, so its events complete earlier. The timeline is the
//     model's.
//   - Failures of the model for lack of addresses or of room for an alignment ([Options]), and
//     calls with faults in several ranges.
//   - The memory that a pool keeps, its failures and statistics; only its blocks are compared.
//
// Both devices need the same capacity and granularity, and must round sizes alike: device/cuda
// rounds to 512 bytes.
package mirror
