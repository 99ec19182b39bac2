package kinds

import (
	"slices"
	"strings"
)

// String writes the path as users do: names with dots in brackets, as in
// metadata.labels[example.com/mine].
func (p Path) String() string {
	var s strings.Builder
	for i, field := range p {
		switch {
		case strings.Contains(field, "."):
			s.WriteString("[" + field + "]")
			continue
		case i > 0:
			s.WriteString(".")
		}
		s.WriteString(field)
	}
	return s.String()
}

// Within tells whether the path leads to parent or into it.
func (p Path) Within(parent Path) bool {
	return len(p) >= len(parent) && slices.Equal(p[:len(parent)], parent)
}
