package demo

import (
	"bytes"
	"encoding/json"
	"testing"
)

// A demo's day has every kind of update, an album, an id that is used twice and
// a restart of the sequence, at any size; the same seed gives the same day.
func TestGenerateMakesAWholeDay(t *testing.T) {
	for _, n := range []int{10, 60, 500} {
		list, err := generate(n, 7)
		again, _ := generate(n, 7)
		if err != nil || len(list) < n || len(list) != len(again) {
			t.Fatalf("%d and %d updates, %v; want at least %d", len(list), len(again), err, n)
		}
		uses, members, kinds := map[place]int{}, map[string]int{}, map[string]bool{}
		for i, u := range list {
			if !bytes.Equal(u.body, again[i].body) {
				t.Fatalf("update %d is not the same for the same seed", i)
			}
			var update struct {
				ID int64 `json:"update_id"`
			}
			if err := json.Unmarshal(u.body, &update); err != nil || update.ID != u.id || u.id <= 0 {
				t.Fatalf("update %d: %v in %s", i, err, u.body)
			}
			uses[place{u.bot, u.id}]++
			kinds[u.kind] = true
			if u.enquiry != "" {
				members[u.enquiry]++
			}
		}
		twice := 0
		for _, n := range uses {
			if n > 2 {
				t.Errorf("an id is used %d times", n)
			}
			twice += n - 1
		}
		albums := 0
		for _, n := range members {
			if n == 3 {
				albums++
			}
		}
		if n == 500 && (twice != 1 || albums == 0 || len(kinds) < 25) {
			t.Errorf("%d ids used twice, %d albums, %d kinds", twice, albums, len(kinds))
		}
	}
}

func TestShareLosesNothing(t *testing.T) {
	for _, n := range []int{0, 1, 4, 5, 1000, 1003} {
		sum := 0
		for i := range 5 {
			sum += share(n, i, 5)
		}
		if sum != n {
			t.Errorf("the shares of %d add up to %d", n, sum)
		}
	}
}
