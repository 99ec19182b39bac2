package daemon

import (
	"bytes"
	"fmt"
	"os"
)

// isDaemon tells whether a process lives and is one of our daemons: its number may belong to a stranger by now.
func isDaemon(pid int) bool {
	env, err := os.ReadFile(fmt.Sprintf("/proc/%d/environ", pid))
	if err != nil {
		return false
	}
	for entry := range bytes.SplitSeq(env, []byte{0}) {
		if bytes.HasPrefix(entry, []byte(optionsEnv+"=")) {
			return true
		}
	}
	return false
}
