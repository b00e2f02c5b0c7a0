package logcopy_test

import (
	"bytes"
	"fmt"
	"testing"

	"github.com/leadonce/leadonce/engine/eventlog/memory"
)

// Events of 1 KB, as eight workers leave them: neighbours are seldom of one
// stream.
func BenchmarkCopyIntoSQLite(b *testing.B) {
	source, target := memory.New(), openSQLite(b)
	for i := range b.N {
		e := event(i)
		e.Data = bytes.Repeat([]byte("x"), 1<<10)
		must(b, source, fmt.Sprintf("update-1-%d", i/32*8+i%8), e)
	}
	b.ResetTimer()
	if _, err := copyAll(b.Context(), source, target); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}

// A copy that finds everything in its place.
func BenchmarkCompareSQLite(b *testing.B) {
	source, target := memory.New(), openSQLite(b)
	for i := range b.N {
		e := event(i)
		e.Data = bytes.Repeat([]byte("x"), 1<<10)
		must(b, source, fmt.Sprintf("update-1-%d", i/100), e)
	}
	if _, err := copyAll(b.Context(), source, target); err != nil {
		b.Fatal(err)
	}
	b.ResetTimer()
	if _, err := copyAll(b.Context(), source, target); err != nil {
		b.Fatal(err)
	}
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "events/s")
}
