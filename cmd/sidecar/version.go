package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/holdfast-dev/holdfast/pkg/lockagent"
)

// version is set by the linker in builds of the Makefile.
var version string

func tellVersion(p program) int {
	_, _ = fmt.Fprintf(p.stdout, "holdfast-agent %s (%s %s/%s)\n", versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return lockagent.ExitOK
}

// versionText is the linked version, else the module's as go install knows it.
func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok && info.Main.Version != "" {
		return info.Main.Version
	}
	return "unknown"
}
