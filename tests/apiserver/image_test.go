package apiserver

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// Of a running pod's images only the agent's may not change: a kubelet would end
// the agent beside a running app.
func TestTheAgentsImageCannotChange(t *testing.T) {
	t.Parallel()
	c := useCluster(t)
	namespace := c.newNamespace(t, nil)
	for name, tc := range map[string]struct {
		patch, want string
	}{
		"the agent's":                 {`{"spec":{"initContainers":[{"name":"holdfast-agent","image":"other"}]}}`, "the image of holdfast-agent cannot change"},
		"the app's":                   {`{"spec":{"containers":[{"name":"app","image":"other"}]}}`, ""},
		"none of them, only metadata": {`{"metadata":{"labels":{"a":"b"}}}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := c.mustCreate(t, namespace, newPod(mutex))
			pods := c.CoreV1().Pods(namespace)
			_, err := pods.Patch(t.Context(), pod.Name, types.StrategicMergePatchType, []byte(tc.patch), metav1.PatchOptions{})
			switch {
			case tc.want == "" && err != nil:
				t.Errorf("refused: %v", err)
			case tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Errorf("got %v, want a refusal with %q", err, tc.want)
			}
		})
	}
}
