package app

import "testing"

func TestPortions(t *testing.T) {
	for _, all := range []int{0, 1, 59, 60, 61, 10000} {
		due, most := all, (all+portions-1)/portions
		for left := portions; left > 0; left-- {
			n := portion(due, left)
			if n > most {
				t.Fatalf("of %d jobs %d are looked at in one go, with %d portions left", all, n, left)
			}
			due -= n
		}
		if due != 0 {
			t.Errorf("of %d jobs %d were not looked at in the period", all, due)
		}
	}
}
