// Package mirror puts a real device, the card, beside a simulated one, the model, so that what is
// proved on the model is seen on the card too.
//
// Whoever uses a [Device] talks to the model: its addresses, its answers, its time. Each call is
// made on the card as well, at the card's own addresses, and the two answers are compared.
// [Device.Differs] has the first that is not alike; after it nothing more is asked of the card,
// because the two no longer hold the same.
//
// # What is compared
//
//   - Success, and the error of package device that a failure is.
//   - Sizes and granularity; that what the card gives is aligned as asked, not at zero, and
//     overlaps nothing else that it has given.
//   - Free memory and the whole, and, when asked for ([Device.Settle]), the account.
//   - Events: what is done on the model is done on the card once the host has waited for it.
//   - Contents: a fill writes to the card too, all bytes or marks at both ends of what is filled
//     and at each page of a range ([Extent]), and a comparison reads them back from there.
//
// # What is not
//
//   - Addresses, and whether two ranges touch: these are the model's, and the card's are other
//     ones. A range that should follow another one does so on the card where there is room.
//   - Time, and work: nothing runs on the card, so its events are done when the model's still wait.
//     The timeline is the model's.
//   - What the model refuses for lack of addresses, or of room for an alignment ([Options]), and
//     calls that are wrong in several ranges at once.
//   - How much memory a pool keeps. Blocks of pools are compared, refusals and figures are not.
//
// Both need the same capacity and the same granularity, and round sizes alike: device/cuda to 512
// bytes.
package mirror
