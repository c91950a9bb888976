package lockagent

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

var (
	acquiredAt = Timestamp(time.Date(2026, 5, 4, 3, 2, 1, 500_000_000, time.UTC))
	heldState  = State{
		Version: 1, Kind: agentenv.Mutex, Resource: "orders/etl", State: Holding, Held: true,
		Token: 1777863721500001, AcquiredAt: &acquiredAt, ExpiresAt: &acquiredAt, Since: acquiredAt,
	}
	waitingState = State{
		Version: 1, Kind: agentenv.Mutex, Resource: "orders/etl", State: Waiting,
		Position: 2, Waiters: 3, Since: acquiredAt,
		Error: &Problem{Code: CodeTimeout, Message: "no answer in 5s"},
	}
)

func read(t *testing.T, dir, name string) string {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func publish(t *testing.T, f *Files, st State) {
	t.Helper()
	if err := f.Publish(st); err != nil {
		t.Fatal(err)
	}
}

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range entries {
		out = append(out, e.Name())
	}
	return out
}

func TestFilesSayWhatTheStateIs(t *testing.T) {
	dir := t.TempDir()
	f := NewFiles(dir)

	publish(t, f, heldState)
	if got, want := read(t, dir, heldFile), "1777863721500001\n"; got != want {
		t.Errorf("held = %q, want %q", got, want)
	}
	const wantHeld = `{"version":1,"kind":"mutex","resource":"orders/etl","state":"holding","held":true,"degraded":false,` +
		`"token":1777863721500001,"acquiredAt":"2026-05-04T03:02:01.500Z","expiresAt":"2026-05-04T03:02:01.500Z","since":"2026-05-04T03:02:01.500Z"}` + "\n"
	if diff := cmp.Diff(wantHeld, read(t, dir, stateFile)); diff != "" {
		t.Errorf("state.json while holding (-want +got):\n%s", diff)
	}

	publish(t, f, waitingState)
	const wantWaiting = `{"version":1,"kind":"mutex","resource":"orders/etl","state":"waiting","held":false,"degraded":false,` +
		`"position":2,"waiters":3,"since":"2026-05-04T03:02:01.500Z","error":{"code":"timeout","message":"no answer in 5s"}}` + "\n"
	if diff := cmp.Diff(wantWaiting, read(t, dir, stateFile)); diff != "" {
		t.Errorf("state.json while waiting (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{stateFile}, names(t, dir)); diff != "" {
		t.Errorf("files while waiting (-want +got):\n%s", diff)
	}
}

func TestHeldIsRewrittenForAnotherToken(t *testing.T) {
	dir := t.TempDir()
	f := NewFiles(dir)
	publish(t, f, heldState)
	next := heldState
	next.Token++
	publish(t, f, next)
	if got, want := read(t, dir, heldFile), "1777863721500002\n"; got != want {
		t.Errorf("held = %q, want %q", got, want)
	}
}

func TestHeldIsTouchedAndComesBack(t *testing.T) {
	dir := t.TempDir()
	f := NewFiles(dir)
	publish(t, f, heldState)
	held := filepath.Join(dir, heldFile)
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(held, old, old); err != nil {
		t.Fatal(err)
	}
	publish(t, f, heldState)
	fi, err := os.Stat(held)
	if err != nil {
		t.Fatal(err)
	}
	if !fi.ModTime().After(old.Add(time.Minute)) {
		t.Errorf("held was last touched at %v, want now", fi.ModTime())
	}

	if err := os.Remove(held); err != nil {
		t.Fatal(err)
	}
	publish(t, f, heldState)
	if got, want := read(t, dir, heldFile), "1777863721500001\n"; got != want {
		t.Errorf("held after it was deleted = %q, want %q", got, want)
	}
}

// A process that starts finds what an earlier one left.
func TestFilesOfAnEarlierProcess(t *testing.T) {
	for name, tc := range map[string]struct {
		st        State
		wantFiles []string
	}{
		"a stale held goes":         {waitingState, []string{stateFile}},
		"an adopted hold keeps its": {heldState, []string{heldFile, stateFile}},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			for file, content := range map[string]string{heldFile: "7\n", stateFile: "{"} {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			publish(t, NewFiles(dir), tc.st)
			if diff := cmp.Diff(tc.wantFiles, names(t, dir)); diff != "" {
				t.Errorf("files (-want +got):\n%s", diff)
			}
			if tc.st.Held && read(t, dir, heldFile) != "1777863721500001\n" {
				t.Error("held still has the earlier token")
			}
		})
	}
}

// The app may run as any user, and its readers never see half a file.
func TestCaseB47FilesAreReadableByAnyUser(t *testing.T) {
	old := syscall.Umask(0o077)
	defer syscall.Umask(old)
	dir := t.TempDir()
	publish(t, NewFiles(dir), heldState)
	for _, name := range []string{heldFile, stateFile} {
		fi, err := os.Stat(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if fi.Mode().Perm() != 0o644 {
			t.Errorf("%s has mode %v, want 0644", name, fi.Mode().Perm())
		}
	}
}

// The held file must not outlive the hold because something else cannot be
// written: a full folder, for one.
func TestHeldGoesEvenIfStateCannotBeWritten(t *testing.T) {
	dir := t.TempDir()
	f := NewFiles(dir)
	publish(t, f, heldState)
	path := filepath.Join(dir, stateFile)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(path, 0o755); err != nil { // a folder cannot be replaced by a file, not even by root
		t.Fatal(err)
	}
	err := f.Publish(waitingState)
	if err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v, want one that names the path", err)
	}
	if _, err := os.Stat(filepath.Join(dir, heldFile)); !os.IsNotExist(err) {
		t.Errorf("held is still there: %v", err)
	}
}

func TestFilesInAFolderThatIsNone(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, st := range map[string]State{"holding": heldState, "waiting": waitingState} {
		err := NewFiles(file).Publish(st)
		if err == nil || !strings.Contains(err.Error(), file) {
			t.Errorf("%s: error %v, want one that names %s", name, err, file)
		}
	}
}

// Else each renewal would be one more line in the log.
func TestSameTroubleWithAFileReadsTheSame(t *testing.T) {
	f := NewFiles(filepath.Join(t.TempDir(), "gone"))
	first, again := f.Publish(heldState), f.Publish(heldState)
	if first == nil || again == nil || first.Error() != again.Error() {
		t.Errorf("first %v, then %v, want the same error", first, again)
	}
}

// A process that is killed while it writes leaves a file, and one only, however
// often that happens: the folder is small, and memory.
func TestKilledWriterLeavesOneFileAtMost(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, ".state.json.part"), []byte("half a st"), 0o600); err != nil {
		t.Fatal(err)
	}
	publish(t, NewFiles(dir), heldState)
	if diff := cmp.Diff([]string{"held", "state.json"}, names(t, dir)); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}
