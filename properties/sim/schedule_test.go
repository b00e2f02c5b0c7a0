package sim

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// FuzzSchedule: any string is a plan or an error of one line, a plan is written as
// it was read, and it can be played.
func FuzzSchedule(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(Draw(Seeded(seed), "").String())
	}
	f.Add("s1.none.p1w1a1.f0.r0.c.u0.")
	f.Add("s1.upsert.p2w1a3njst2.f0.r1.c.u0.d")
	f.Add("s1.lookup.p3w2a9nj.fffffffffffffffff.r1.c1-2-3.u0-1.d_u1-2-3_z")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := ParseSchedule(s)
		if err != nil {
			if strings.ContainsAny(err.Error(), "\r\n") {
				t.Fatalf("%q: an error of several lines: %v", s, err)
			}
			return
		}
		again, err := ParseSchedule(p.String())
		if err != nil || again.String() != p.String() || !same(p, again) {
			t.Fatalf("%q is read as %+v, and written as %s (%v)", s, p, p, err)
		}
		if len(p.Steps) > 40 || len(p.Updates) > 8 {
			return
		}
		if v := Play(p, &Coverage{}); v != nil {
			t.Fatalf("%s: %v", p, v)
		}
	})
}

// same compares plans; an empty list is no list.
func same(a, b Plan) bool {
	return fmt.Sprint(a) == fmt.Sprint(b) && equal(a.Setup, b.Setup) && slices.Equal(a.Steps, b.Steps)
}

func TestAPlanSurvivesItsSchedule(t *testing.T) {
	for seed := range uint64(200) {
		p := Draw(Seeded(seed), "")
		parsed, err := ParseSchedule(p.String())
		if err != nil || !same(p, parsed) {
			t.Fatalf("seed %d: %s is parsed as %s (%v)", seed, p, parsed, err)
		}
	}
}

func TestABadScheduleIsNamed(t *testing.T) {
	good := "s1.lookup.p2w1a3.fff.r0.c.u0-1.d_w1"
	if _, err := ParseSchedule(good); err != nil {
		t.Fatal(err)
	}
	for bad, want := range map[string]string{
		"":                                      "8 parts",
		"s0" + good[2:]:                         "begins with s1",
		strings.Replace(good, "lookup", "l", 1): "capability class",
		strings.Replace(good, "p2w1a3", "p2w1", 1):     "p2w1a3",
		strings.Replace(good, "p2w1a3", "p9w1a3", 1):   "9 processes",
		strings.Replace(good, "p2w1a3", "p2w1a0", 1):   "0 attempts",
		strings.Replace(good, "p2w1a3", "p2w1a3t", 1):  "0, 1 or 2",
		strings.Replace(good, "p2w1a3", "p2w1a3t3", 1): "0, 1 or 2",
		strings.Replace(good, "p2w1a3", "p2w1a3ts", 1): "0, 1 or 2",
		strings.Replace(good, "fff", "fxyz", 1):        "hexadecimal",
		strings.Replace(good, "u0-1", "u", 1):          "0 updates",
		strings.Replace(good, "u0-1", "u0--1", 1):      "no number",
		strings.Replace(good, "d_w1", "d_q1", 1):       "no step",
		strings.Replace(good, "d_w1", "d__w", 1):       "empty step",
		strings.Replace(good, "d_w1", "d1-2-3-4", 1):   "at most three numbers",
	} {
		if _, err := ParseSchedule(bad); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want an error with %q", bad, err, want)
		}
	}
}
