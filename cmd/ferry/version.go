package main

import (
	"cmp"
	"runtime/debug"
)

// version is set when linking, where the source comes without git: -ldflags "-X main.version=v1.2.3".
var version string

// versionFrom is what was linked in, else what the go command took from git: the tag, or the date and the commit.
func versionFrom(linked string, info *debug.BuildInfo) string {
	if linked != "" || info == nil {
		return cmp.Or(linked, "dev")
	}
	if stamped := info.Main.Version; stamped != "" && stamped != "(devel)" {
		return stamped
	}
	commit, dirty := "", ""
	for _, setting := range info.Settings {
		switch {
		case setting.Key == "vcs.revision":
			commit = setting.Value
		case setting.Key == "vcs.modified" && setting.Value == "true":
			dirty = "+dirty"
		}
	}
	if commit == "" {
		return "dev"
	}
	return commit[:min(len(commit), 12)] + dirty
}

func thisVersion() string {
	info, _ := debug.ReadBuildInfo()
	return versionFrom(version, info)
}
