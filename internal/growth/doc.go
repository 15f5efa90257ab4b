// Package growth decides how large the next region of a strategy is, and which regions
// without a live block go back to the device.
//
// A [Policy] has five kinds:
//
//   - "fixed": regions of Region bytes; a request that needs more gets a region of its own;
//   - "doubling": each region is twice the last, the first has Region bytes; a region that
//     goes back takes one doubling with it;
//   - "request": a region has what the request needs, in whole multiples of Region;
//   - "proportional": a region has a sixteenth of what the pool holds, at least Region bytes, so
//     that the last region, however little of it is used, is at most 6 % of all, and the
//     number of regions grows with the logarithm of the bytes held;
//   - "whole": one region of the whole limit, or of all that the device gives at once, found
//     to 2 MiB. Nothing is lost between regions, because there is only one.
//
// No region is smaller than the request that it is for, and none leads above Limit. What
// the device refuses is asked for again with half of what is beyond the request, until
// nothing is beyond it: on a device that is nearly full a smaller region is better than
// none.
//
// [Pool] is [regions.Set] with such a policy, and with the account of empty regions: with
// Release they go back as soon as more than Keep bytes would be empty.
package growth
