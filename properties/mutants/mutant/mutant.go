// Package mutant is the switch behind every mutation. The instrumented copies that
// package mutants compiles call it; nothing else does.
//
// One process runs at most one mutant, named by LEADONCE_MUTANT. It may take
// LEADONCE_MUTANT_STEPS steps, one for each mutation that it comes by, so that a
// mutant that never ends is found without a clock. With LEADONCE_MUTANT_TRACE, a
// file that is as long as there are mutations and Header more, it notes there
// which mutations it came by, and how many steps that took.
package mutant

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"math"
	"os"
	"strconv"
	"time"
)

// Header is how many bytes of a trace come before its first mutation: the number
// of steps, big-endian.
const Header = 8

// TooLong is the exit status of a mutant that took all of its steps.
const TooLong = 97

var (
	active int // 0: none
	// left is how many steps are left. Goroutines may lose some of their steps to
	// each other; what counts them is a bound, and need not be exact.
	left  int64 = math.MaxInt64
	trace *os.File
	noted []bool // in the trace, by mutation
)

func init() {
	active = number("LEADONCE_MUTANT", 0)
	left = int64(number("LEADONCE_MUTANT_STEPS", math.MaxInt64))
	name := os.Getenv("LEADONCE_MUTANT_TRACE")
	if name == "" {
		return
	}
	file, err := os.OpenFile(name, os.O_RDWR, 0)
	if err != nil {
		panic(err)
	}
	info, err := file.Stat()
	if err != nil {
		panic(err)
	}
	trace, noted, left = file, make([]bool, info.Size()-Header), 0
}

func number(name string, otherwise int) int {
	value := os.Getenv(name)
	if value == "" {
		return otherwise
	}
	n, err := strconv.Atoi(value)
	if err != nil {
		panic(fmt.Sprintf("%s: %v", name, err))
	}
	return n
}

// On reports whether the mutation is the one that is run.
func On(id int) bool {
	if left--; left < 0 {
		out(id)
	}
	return id == active
}

// noteEvery is after how many steps their number is noted: a test binary tells
// nobody when it ends.
const noteEvery = 1 << 14

func out(id int) {
	if trace == nil {
		fmt.Fprintln(os.Stderr, "the mutant took too many steps")
		os.Exit(TooLong)
	}
	if noted[id] && left%noteEvery != 0 {
		return
	}
	noted[id] = true
	_, err1 := trace.WriteAt([]byte{1}, int64(Header+id))
	_, err2 := trace.WriteAt(binary.BigEndian.AppendUint64(nil, uint64(-left)), 0)
	if err := cmp.Or(err1, err2); err != nil {
		panic(err)
	}
}

// Number is what can be calculated with.
type Number interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float32 | ~float64
}

// Whole is what has bits.
type Whole interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// Each of the following is what its name says, or the mutation of it.

// Zero is v, or its type's zero value.
func Zero[T any](id int, v T) T {
	if On(id) {
		var zero T
		return zero
	}
	return v
}

// Keep is v, or what was there before.
func Keep[T any](id int, before, v T) T {
	if On(id) {
		return before
	}
	return v
}

// Shift is n, or n and d.
func Shift[T Number](id int, n, d T) T {
	if On(id) {
		return n + d
	}
	return n
}

// Less is a < b, or ≤.
func Less[T cmp.Ordered](id int, a, b T) bool { return a < b || On(id) && a == b }

// AtMost is a ≤ b, or <.
func AtMost[T cmp.Ordered](id int, a, b T) bool { return a < b || !On(id) && a == b }

// More is a > b, or ≥.
func More[T cmp.Ordered](id int, a, b T) bool { return a > b || On(id) && a == b }

// AtLeast is a ≥ b, or >.
func AtLeast[T cmp.Ordered](id int, a, b T) bool { return a > b || !On(id) && a == b }

// Before is a.Before(b), or not after it.
func Before(id int, a, b time.Time) bool { return a.Before(b) || On(id) && a.Equal(b) }

// After is a.After(b), or not before it.
func After(id int, a, b time.Time) bool { return a.After(b) || On(id) && a.Equal(b) }

// Sum is a + b, or -.
func Sum[T Number](id int, a, b T) T {
	if On(id) {
		return a - b
	}
	return a + b
}

// Difference is a - b, or +.
func Difference[T Number](id int, a, b T) T {
	if On(id) {
		return a + b
	}
	return a - b
}

// Product is a * b, or /.
func Product[T Number](id int, a, b T) T {
	if On(id) {
		return a / b
	}
	return a * b
}

// Quotient is a / b, or *.
func Quotient[T Number](id int, a, b T) T {
	if On(id) {
		return a * b
	}
	return a / b
}

// Common is a & b, or |.
func Common[T Whole](id int, a, b T) T {
	if On(id) {
		return a | b
	}
	return a & b
}

// Either is a | b, or &.
func Either[T Whole](id int, a, b T) T {
	if On(id) {
		return a & b
	}
	return a | b
}

// Min is min(a, b), or max.
func Min[T cmp.Ordered](id int, a, b T) T {
	if On(id) {
		return max(a, b)
	}
	return min(a, b)
}

// Max is max(a, b), or min.
func Max[T cmp.Ordered](id int, a, b T) T {
	if On(id) {
		return min(a, b)
	}
	return max(a, b)
}
