//go:build e2e

package e2e

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
)

// lookAround finds out how much of the node is within reach. A pod's journal has
// to be; its processes need not.
func (c *cluster) lookAround(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startWithin)
	defer cancel()
	namespace, err := c.CoreV1().Namespaces().Create(ctx, &corev1.Namespace{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "look-around-"},
	}, metav1.CreateOptions{})
	if err != nil {
		return err
	}
	defer c.CoreV1().Namespaces().Delete(ctx, namespace.Name, metav1.DeleteOptions{}) // only tidies up
	folder := filepath.Join(c.journals, namespace.Name)
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return err
	}
	defer os.RemoveAll(folder) // only tidies up

	s := &trial{namespace: namespace.Name, journal: folder}
	pod, err := c.CoreV1().Pods(namespace.Name).Create(ctx, newPod("probe", nil, s.withJournal), metav1.CreateOptions{})
	if err != nil {
		return err
	}
	err = wait.PollUntilContextCancel(ctx, pollEvery, true, func(context.Context) (bool, error) {
		lives, err := readLives(folder)
		return len(lives) > 0, err
	})
	if err != nil {
		return fmt.Errorf("the journal of a plain pod does not show in %s: the pod does not start (is the image loaded?), "+
			"or the node has another folder there; see HOLDFAST_E2E_JOURNALS in hack/e2e: %w", folder, err)
	}
	c.seesProcesses = os.Getuid() == 0 && findProcess(pod, pod.Spec.Containers[0].Command...) != 0
	if !c.seesProcesses {
		fmt.Println("e2e: not root, or the node's processes are not this machine's: tests that freeze or kill one are skipped")
	}
	for _, variable := range []string{kubeletVariable, rebootVariable} {
		if os.Getenv(variable) == "" {
			fmt.Printf("e2e: no %s: the tests that need it are skipped\n", variable)
		}
	}
	return nil
}
