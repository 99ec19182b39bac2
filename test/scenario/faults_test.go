package scenario

import "strings"

// Faults that stay, after the other commands: fail CODE CLUSTER VERB [KIND], and heal CLUSTER VERB [KIND].
func init() {
	commands["fail"] = func(s *session, a []string) { s.world.Fail(strings.Join(a[1:], " "), number(a[0])) }
	commands["heal"] = func(s *session, a []string) { s.world.Heal(strings.Join(a, " ")) }
}
