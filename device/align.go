package device

import "golang.org/x/exp/constraints"

// IsPowerOfTwo reports whether n is a power of two. Zero is not.
func IsPowerOfTwo[T constraints.Unsigned](n T) bool { return n != 0 && n&(n-1) == 0 }

// AlignDown rounds n down to a multiple of align.
//
// Precondition: align is a power of two.
func AlignDown[T, A constraints.Unsigned](n T, align A) T { return n &^ (T(align) - 1) }

// AlignUp rounds n up to a multiple of align. The result wraps to zero if it exceeds the type;
// check untrusted sizes with [CanAlignUp].
//
// Precondition: align is a power of two.
func AlignUp[T, A constraints.Unsigned](n T, align A) T {
	return (n + T(align) - 1) &^ (T(align) - 1)
}

// CanAlignUp reports whether n rounded up to a multiple of align fits the type.
//
// Precondition: align is a power of two.
func CanAlignUp[T, A constraints.Unsigned](n T, align A) bool { return n <= ^(T(align) - 1) }
