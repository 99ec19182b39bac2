package reserve

import (
	"errors"
	"testing"
)

func TestNamesAreHeldUntilReleased(t *testing.T) {
	var one, two Set
	defer two.Release()
	name := t.Name() + t.TempDir()
	if err := one.Name(name); err != nil {
		t.Fatal(err)
	}
	if err := two.Name(name); !errors.Is(err, ErrTaken) {
		t.Fatalf("a name that is held was given away: %v", err)
	}
	one.Release()
	if err := two.Name(name); err != nil {
		t.Fatalf("a released name is free: %v", err)
	}
}

func TestPortsAreNeverGivenTwice(t *testing.T) {
	var one, two Set
	defer one.Release()
	defer two.Release()
	seen := map[int]bool{}
	for range 200 {
		for _, s := range []*Set{&one, &two} {
			port, err := s.Port()
			if err != nil {
				t.Fatal(err)
			}
			if seen[port] {
				t.Fatalf("port %d was given twice", port)
			}
			seen[port] = true
		}
	}
}
