package main

import (
	"runtime/debug"
	"testing"

	. "github.com/onsi/gomega"
)

func TestVersion(t *testing.T) {
	info := func(main string, settings ...string) *debug.BuildInfo {
		i := &debug.BuildInfo{Main: debug.Module{Version: main}}
		for at := 0; at < len(settings); at += 2 {
			i.Settings = append(i.Settings, debug.BuildSetting{Key: settings[at], Value: settings[at+1]})
		}
		return i
	}
	for name, c := range map[string]struct {
		linked string
		info   *debug.BuildInfo
		want   string
	}{
		"linked in":      {"v1.2.3", info("v1.2.2"), "v1.2.3"},
		"a tag":          {"", info("v1.2.3"), "v1.2.3"},
		"a commit":       {"", info("v0.0.0-20261201033029-e88d003c0ffe+dirty"), "v0.0.0-20261201033029-e88d003c0ffe+dirty"},
		"only git's":     {"", info("(devel)", "vcs.revision", "e88d003c0ffee88d003c0ffe", "vcs.modified", "true"), "e88d003c0ffe+dirty"},
		"a short commit": {"", info("", "vcs.revision", "e88d", "vcs.modified", "false"), "e88d"},
		"without git":    {"", info("(devel)"), "dev"},
		"nothing at all": {"", nil, "dev"},
	} {
		t.Run(name, func(t *testing.T) {
			NewWithT(t).Expect(versionFrom(c.linked, c.info)).To(Equal(c.want))
		})
	}
}
