package scenario

import "strings"

// Faults that stay, after the other commands: fail CODE CLUSTER VERB [KIND], heal CLUSTER VERB [KIND]; and an end of a
// copy that is no result: end-on WORKER JOB REASON.
func init() {
	commands["fail"] = func(s *session, a []string) { s.world.Fail(strings.Join(a[1:], " "), number(a[0])) }
	commands["heal"] = func(s *session, a []string) { s.world.Heal(strings.Join(a, " ")) }
	commands["end-on"] = func(s *session, a []string) { s.did(s.world.EndOn(a[0], a[1], a[2])) }
}
