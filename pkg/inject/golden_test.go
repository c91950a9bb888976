package inject

import (
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

const goldenSuffix = ".injected.yaml"

// TestGolden injects each pod of testdata/pods and compares with the file beside
// it. Run it with -update after a change, and read the difference.
func TestGolden(t *testing.T) {
	settings := testSettings(t)
	for _, file := range podFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			got := mustInject(t, readPod(t, file), settings)
			golden := strings.TrimSuffix(file, ".yaml") + goldenSuffix
			if *update {
				writePod(t, golden, got)
			}
			// Both sides go through YAML, so that an empty list equals none.
			if diff := cmp.Diff(asYAML(t, readPod(t, golden)), asYAML(t, got)); diff != "" {
				t.Errorf("injected pod differs from %s (-want +got):\n%s", golden, diff)
			}
		})
	}
}

func TestSecondPassChangesNothing(t *testing.T) {
	settings := testSettings(t)
	for _, file := range podFiles(t) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			once := mustInject(t, readPod(t, file), settings)
			twice := mustInject(t, once, settings)
			if diff := cmp.Diff(once, twice); diff != "" {
				t.Errorf("second pass (-once +twice):\n%s", diff)
			}
		})
	}
}

func TestNoGoldenFileIsStale(t *testing.T) {
	goldens, err := filepath.Glob("testdata/pods/*" + goldenSuffix)
	if err != nil {
		t.Fatal(err)
	}
	for _, golden := range goldens {
		if _, err := os.Stat(strings.TrimSuffix(golden, goldenSuffix) + ".yaml"); err != nil {
			t.Errorf("%s belongs to no pod: %v", golden, err)
		}
	}
}

func podFiles(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("testdata/pods/*.yaml")
	if err != nil {
		t.Fatal(err)
	}
	var files []string
	for _, file := range all {
		if !strings.HasSuffix(file, goldenSuffix) {
			files = append(files, file)
		}
	}
	if len(files) == 0 {
		t.Fatal("no pods in testdata/pods")
	}
	return files
}

func readPod(t *testing.T, file string) *corev1.Pod {
	t.Helper()
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{}
	if err := yaml.UnmarshalStrict(text, pod); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
	return pod
}

func writePod(t *testing.T, file string, pod *corev1.Pod) {
	t.Helper()
	if err := os.WriteFile(file, []byte(asYAML(t, pod)), 0o600); err != nil {
		t.Fatal(err)
	}
}

func asYAML(t *testing.T, pod *corev1.Pod) string {
	t.Helper()
	text, err := yaml.Marshal(pod)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}
