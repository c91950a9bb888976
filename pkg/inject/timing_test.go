package inject

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"

	"github.com/holdfast-dev/holdfast/pkg/lockagent/agentenv"
)

func TestMargin(t *testing.T) {
	tests := map[string]struct {
		annotations []string
		apps        int // in all
		inits       int
		want        time.Duration
	}{
		"stop, one container":              {nil, 1, 0, 6500 * time.Millisecond},
		"stop, longest ttl":                {[]string{KeyTTL, "60s"}, 1, 0, 9500 * time.Millisecond},
		"stop, three containers":           {nil, 3, 0, 11 * time.Second},
		"stop, init containers after":      {nil, 1, 2, 11 * time.Second},
		"stop, init containers before":     {[]string{KeyOrder, "last"}, 1, 2, 6500 * time.Millisecond},
		"stop, shortest ttl, just fits":    {[]string{KeyTTL, "20s"}, 3, 0, 10 * time.Second},
		"notify":                           {[]string{KeyOnLost, "notify"}, 5, 5, 6 * time.Second},
		"notify, shortest ttl":             {[]string{KeyOnLost, "notify", KeyTTL, "5s"}, 1, 0, time.Second},
		"gate none only tells":             {[]string{KeyGate, "none"}, 1, 0, 6 * time.Second},
		"gate none that is to stop an app": {[]string{KeyGate, "none", KeyOnLost, "stop"}, 1, 0, 6500 * time.Millisecond},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			req, got := parse(t, podOf(tc.apps, tc.inits, tc.annotations...))
			if len(got) > 0 {
				t.Fatalf("denied: %q", got)
			}
			if req.Agent.Margin != tc.want {
				t.Errorf("margin %s, want %s", req.Agent.Margin, tc.want)
			}
		})
	}
}

// podOf has as many app and init containers as it is told.
func podOf(apps, inits int, annotations ...string) *corev1.Pod {
	pod := testPod(append(annotations, KeyMutex, "m")...)
	for i := 1; i < apps; i++ {
		pod.Spec.Containers = append(pod.Spec.Containers, corev1.Container{Name: fmt.Sprintf("app-%d", i), Image: "busybox"})
	}
	for i := range inits {
		pod.Spec.InitContainers = append(pod.Spec.InitContainers, corev1.Container{Name: fmt.Sprintf("init-%d", i), Image: "busybox"})
	}
	return pod
}

func TestTooManyContainersForTheTTL(t *testing.T) {
	tests := map[string]struct {
		ttl  string
		apps int
		want string
	}{
		"names the smallest ttl that works": {"20s", 4, "too short to stop this pod's containers in time: use 26s or more"},
		"rounds it up":                      {"30s", 6, "too short to stop this pod's containers in time: use 37s or more"},
		"says that none works":              {"60s", 12, "no ttl is long enough to stop this pod's containers in time: use holdfast.dev/on-lost: notify, or fewer containers"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			_, got := parse(t, podOf(tc.apps, 0, KeyTTL, tc.ttl))
			want := fmt.Sprintf("metadata.annotations[holdfast.dev/ttl]: Invalid value: %q: %s", tc.ttl, tc.want)
			if diff := cmp.Diff([]string{want}, got); diff != "" {
				t.Errorf("messages (-want +got):\n%s", diff)
			}
		})
	}
}

func TestTooManyContainersForTheDefaultTTL(t *testing.T) {
	_, got := parse(t, podOf(6, 0))
	want := []string{`metadata.annotations[holdfast.dev/ttl]: Invalid value: "30s": too short to stop this pod's containers in time: use 37s or more`}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("messages (-want +got):\n%s", diff)
	}
}

// The ttl that a message recommends is accepted, and none that is shorter is.
func TestSmallestTTLIsTheSmallest(t *testing.T) {
	for apps := 1; apps <= 10; apps++ {
		smallest := smallestTTL(stopDelay + time.Duration(apps)*stopPerContainer)
		if _, got := parse(t, podOf(apps, 0, KeyTTL, short(smallest))); len(got) > 0 {
			t.Errorf("%d containers: %s was recommended, but denied: %q", apps, smallest, got)
		}
		if _, got := parse(t, podOf(apps, 0, KeyTTL, short(smallest-time.Second))); len(got) == 0 {
			t.Errorf("%d containers: %s was recommended, but less works too", apps, smallest)
		}
	}
}

func TestMarginOfAWrappedCommand(t *testing.T) {
	p := &parser{req: newRequest(), spec: &corev1.PodSpec{}}
	p.req.Agent.Gate, p.req.Agent.OnLost = agentenv.GateExec, agentenv.LostStop
	if got, want := margin(30*time.Second, p.stopping()), 8500*time.Millisecond; got != want {
		t.Errorf("margin %s, want %s", got, want)
	}
}
