package job

import (
	"runtime"
	"strings"
	"testing"
	"time"
)

// TestHostileBodiesCostLittleTimeAndMemory bounds what one body of the largest
// size that ingress lets in can cost. The bounds are far above what is measured
// (under 0.2 s and 100 MiB) and far below what a quadratic reader needs.
func TestHostileBodiesCostLittleTimeAndMemory(t *testing.T) {
	const mib = 1 << 20
	nested := func(open, inner, end string, depth int) string {
		return strings.Repeat(open, depth) + inner + strings.Repeat(end, depth)
	}
	long := `"` + strings.Repeat("x", 900_000) + `"`
	contents := map[string]string{
		"9,999 levels, members unsorted, all at the bottom": nested(`{"b":0,"a":`, long, "}", 9_998),
		"9,999 levels of arrays":                            nested("[", long, "]", 9_998),
		"siblings at every level":                           nested(`{"b":"`+strings.Repeat("y", 90)+`","a":`, "1", "}", 9_998),
		"a mebibyte of digits":                              strings.Repeat("9", mib),
		"a mebibyte of zeros":                               "0." + strings.Repeat("0", mib) + "1",
		"a mebibyte of exponent":                            "1e" + strings.Repeat("9", mib),
		"a mebibyte of negative exponent":                   "1e-" + strings.Repeat("9", mib),
		"one name 200,000 times":                            `{"":0` + strings.Repeat(`,"":0`, 200_000) + "}",
		"names that differ at their end":                    `{"` + strings.Repeat("n", 1000) + `":0` + strings.Repeat(`,"`+strings.Repeat("n", 1000)+`x":0`, 1000) + "}",
		"empty arrays":                                      "[[]" + strings.Repeat(",[]", 340_000) + "]",
		"empty objects":                                     "[{}" + strings.Repeat(",{}", 340_000) + "]",
		"escapes":                                           `"` + strings.Repeat(`\u0041`, 170_000) + `"`,
		"lone surrogates":                                   `"` + strings.Repeat(`\ud800`, 170_000) + `"`,
		"backslashes":                                       `"` + strings.Repeat(`\\`, 500_000) + `"`,
		"spaces":                                            strings.Repeat(" ", mib) + "1",
	}
	for name, content := range contents {
		t.Run(name, func(t *testing.T) {
			raw := []byte(`{"update_id":1,"message":` + content + `}`)
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			start := time.Now()
			u, err := ParseUpdate(1, raw)
			took := time.Since(start)
			runtime.ReadMemStats(&after)
			if err != nil {
				t.Fatal(err)
			}
			if allocated := (after.TotalAlloc - before.TotalAlloc) / mib; took > 5*time.Second || allocated > 300 {
				t.Errorf("%d bytes took %s and allocated %d MiB", len(raw), took, allocated)
			}
			if plan := DefaultPlan(u.Key(), u); len(plan.Undecodable) > 200 || len(plan.Reason) > 200 {
				t.Errorf("the plan is %.300s%.300s", plan.Undecodable, plan.Reason)
			}
		})
	}
}
