package main

import "fmt"

// tell puts an event into words; empty if it is not worth any.
func tell(e event) string {
	switch e.what {
	case appStarted:
		return green.in(e.pod+" holds") + fmt.Sprintf(", fencing token %d; its app starts", e.token)
	case appEnded:
		return fmt.Sprintf("%s: its app has ended%s", e.pod, exitText(e.exit))
	case podRestarted:
		return yellow.in(e.pod + " restarts in place, from its init containers")
	default:
		return ""
	}
}

// exitText says how a process has ended, if not well.
func exitText(code int) string {
	switch {
	case code < 0:
		return " (killed)"
	case code == 128+15:
		return " (on TERM)"
	case code > 0:
		return fmt.Sprintf(" (exit code %d)", code)
	default:
		return ""
	}
}
